//! The vector registers of x86-64.

use super::Lanes;
use super::packed::{Instructions, Narrow, Packed, Register, Wide};
use std::arch::x86_64::*;

/// Two `f64` with SSE2, which every processor of this kind has.
pub(crate) type F64x2 = Packed<__m128d>;
/// Four `f64` with AVX2 and FMA.
pub(crate) type F64x4 = Packed<__m256d>;
/// Eight `f64` with AVX-512 (F, DQ, BW, VL).
pub(crate) type F64x8 = Packed<__m512d>;
/// Four `f32` with SSE2.
pub(crate) type F32x4 = Packed<__m128>;
/// Eight `f32` with AVX2 and FMA.
pub(crate) type F32x8 = Packed<__m256>;
/// Sixteen `f32` with AVX-512 (F, DQ, BW, VL).
pub(crate) type F32x16 = Packed<__m512>;

// SAFETY, of this macro and of all unsafe blocks in this file: the intrinsics need nothing but a processor that has
// them. The types are not visible outside of the crate and are used only under `Isa`'s dispatch, which looks first.
// Those that read or write memory are called as their callers promise; all are of the unaligned kind.
macro_rules! instructions {
    ($R:ident of $W:literal $E:ident: $splat:ident, $sqrt:ident, $load:ident, $store:ident;
     numbers: $($f:ident $i:ident),*;
     bits as $int:ident, back by $number:ident: $($g:ident $j:ident),*; shifts: $($h:ident $k:ident),*;) => {
        impl Instructions for $R {
            type Element = $E;
            const WIDTH: usize = $W;
            #[inline(always)]
            fn splat(x: $E) -> Self { unsafe { $splat(x) } }
            #[inline(always)]
            fn sqrt(self) -> Self { unsafe { $sqrt(self) } }
            $(
                #[inline(always)]
                fn $f(self, o: Self) -> Self { unsafe { $i(self, o) } }
            )*
            $(
                #[inline(always)]
                fn $g(self, o: Self) -> Self { unsafe { $number($j($int(self), $int(o))) } }
            )*
            $(
                // (becomes a shift by a fixed number)
                #[inline(always)]
                fn $h(self, by: u32) -> Self {
                    unsafe { $number($k($int(self), _mm_cvtsi32_si128(by as i32))) }
                }
            )*
            #[inline(always)]
            unsafe fn load(from: *const $E) -> Self { unsafe { $load(from) } }
            #[inline(always)]
            unsafe fn store(self, to: *mut $E) { unsafe { $store(to, self) } }
        }
    };
}
instructions! {
    __m128d of 2 f64: _mm_set1_pd, _mm_sqrt_pd, _mm_loadu_pd, _mm_storeu_pd;
    numbers: add _mm_add_pd, sub _mm_sub_pd, mul _mm_mul_pd, div _mm_div_pd, larger _mm_max_pd, smaller _mm_min_pd;
    bits as _mm_castpd_si128, back by _mm_castsi128_pd:
        and _mm_and_si128, or _mm_or_si128, xor _mm_xor_si128, plus _mm_add_epi64, minus _mm_sub_epi64;
    shifts: up _mm_sll_epi64, down _mm_srl_epi64;
}
instructions! {
    __m256d of 4 f64: _mm256_set1_pd, _mm256_sqrt_pd, _mm256_loadu_pd, _mm256_storeu_pd;
    numbers: add _mm256_add_pd, sub _mm256_sub_pd, mul _mm256_mul_pd, div _mm256_div_pd,
        larger _mm256_max_pd, smaller _mm256_min_pd;
    bits as _mm256_castpd_si256, back by _mm256_castsi256_pd:
        and _mm256_and_si256, or _mm256_or_si256, xor _mm256_xor_si256,
        plus _mm256_add_epi64, minus _mm256_sub_epi64;
    shifts: up _mm256_sll_epi64, down _mm256_srl_epi64;
}
instructions! {
    __m512d of 8 f64: _mm512_set1_pd, _mm512_sqrt_pd, _mm512_loadu_pd, _mm512_storeu_pd;
    numbers: add _mm512_add_pd, sub _mm512_sub_pd, mul _mm512_mul_pd, div _mm512_div_pd,
        larger _mm512_max_pd, smaller _mm512_min_pd;
    bits as _mm512_castpd_si512, back by _mm512_castsi512_pd:
        and _mm512_and_si512, or _mm512_or_si512, xor _mm512_xor_si512,
        plus _mm512_add_epi64, minus _mm512_sub_epi64;
    shifts: up _mm512_sll_epi64, down _mm512_srl_epi64;
}
instructions! {
    __m128 of 4 f32: _mm_set1_ps, _mm_sqrt_ps, _mm_loadu_ps, _mm_storeu_ps;
    numbers: add _mm_add_ps, sub _mm_sub_ps, mul _mm_mul_ps, div _mm_div_ps, larger _mm_max_ps, smaller _mm_min_ps;
    bits as _mm_castps_si128, back by _mm_castsi128_ps:
        and _mm_and_si128, or _mm_or_si128, xor _mm_xor_si128, plus _mm_add_epi32, minus _mm_sub_epi32;
    shifts: up _mm_sll_epi32, down _mm_srl_epi32;
}
instructions! {
    __m256 of 8 f32: _mm256_set1_ps, _mm256_sqrt_ps, _mm256_loadu_ps, _mm256_storeu_ps;
    numbers: add _mm256_add_ps, sub _mm256_sub_ps, mul _mm256_mul_ps, div _mm256_div_ps,
        larger _mm256_max_ps, smaller _mm256_min_ps;
    bits as _mm256_castps_si256, back by _mm256_castsi256_ps:
        and _mm256_and_si256, or _mm256_or_si256, xor _mm256_xor_si256,
        plus _mm256_add_epi32, minus _mm256_sub_epi32;
    shifts: up _mm256_sll_epi32, down _mm256_srl_epi32;
}
instructions! {
    __m512 of 16 f32: _mm512_set1_ps, _mm512_sqrt_ps, _mm512_loadu_ps, _mm512_storeu_ps;
    numbers: add _mm512_add_ps, sub _mm512_sub_ps, mul _mm512_mul_ps, div _mm512_div_ps,
        larger _mm512_max_ps, smaller _mm512_min_ps;
    bits as _mm512_castps_si512, back by _mm512_castsi512_ps:
        and _mm512_and_si512, or _mm512_or_si512, xor _mm512_xor_si512,
        plus _mm512_add_epi32, minus _mm512_sub_epi32;
    shifts: up _mm512_sll_epi32, down _mm512_srl_epi32;
}

/// Entry m: the positions of the bits of m, a byte each, in order.
static POSITIONS: [u64; 256] = {
    let mut table = [0; 256];
    let mut m = 0;
    while m < 256 {
        let (mut k, mut count) = (0, 0);
        while k < 8 {
            if m >> k & 1 == 1 {
                table[m] |= k << (8 * count);
                count += 1;
            }
            k += 1;
        }
        m += 1;
    }
    table
};

/// The row that starts at number `*slot`.
#[inline(always)]
unsafe fn row<E>(rows: *const [E; 4], slot: *const u32) -> *const E {
    unsafe { rows.cast::<E>().add(*slot as usize) }
}

impl Register for __m128d {
    type Mask = Wide<Self>;
    type Double = Self;
    #[inline(always)]
    fn add_to(self, sums: &mut [Packed<Self>; 2]) {
        sums[0] = sums[0] + Packed(self);
    }
    const FUSED: bool = false;
    const GUESSED_ROOT: bool = false;
    #[inline(always)]
    fn lt(self, o: Self) -> Wide<Self> {
        Wide(unsafe { _mm_cmplt_pd(self, o) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> Wide<Self> {
        Wide(unsafe { _mm_cmple_pd(self, o) })
    }
    #[inline(always)]
    fn select(mask: Wide<Self>, a: Self, b: Self) -> Self {
        unsafe { _mm_or_pd(_mm_and_pd(mask.0, a), _mm_andnot_pd(mask.0, b)) }
    }
    #[inline(always)]
    fn bits(mask: Wide<Self>) -> u32 {
        unsafe { _mm_movemask_pd(mask.0) as u32 }
    }
    #[inline(always)]
    fn first(count: usize) -> Wide<Self> {
        unsafe { _mm_setr_pd(0.0, 1.0) }.lt(Self::splat(count as f64))
    }
    #[inline(always)]
    fn sum(self) -> f64 {
        unsafe { _mm_cvtsd_f64(_mm_add_sd(self, _mm_unpackhi_pd(self, self))) }
    }
    #[inline(always)]
    unsafe fn narrow(from: *const f64, origin: f64) -> Self {
        unsafe { Self::load(from) }.sub(Self::splat(origin))
    }
    #[inline(always)]
    unsafe fn rows(rows: *const [f64; 4], slots: *const u32) -> [Self; 4] {
        unsafe {
            let (p, q) = (row(rows, slots), row(rows, slots.add(1)));
            let (a, b) = (_mm_loadu_pd(p), _mm_loadu_pd(q));
            let (c, d) = (_mm_loadu_pd(p.add(2)), _mm_loadu_pd(q.add(2)));
            [_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b), _mm_unpacklo_pd(c, d), _mm_unpackhi_pd(c, d)]
        }
    }
}

impl Register for __m256d {
    type Mask = Wide<Self>;
    type Double = Self;
    #[inline(always)]
    fn add_to(self, sums: &mut [Packed<Self>; 2]) {
        sums[0] = sums[0] + Packed(self);
    }
    const FUSED: bool = true;
    const GUESSED_ROOT: bool = true;
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        unsafe { _mm256_fmadd_pd(self, a, b) }
    }
    #[inline(always)]
    fn lt(self, o: Self) -> Wide<Self> {
        Wide(unsafe { _mm256_cmp_pd::<_CMP_LT_OQ>(self, o) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> Wide<Self> {
        Wide(unsafe { _mm256_cmp_pd::<_CMP_LE_OQ>(self, o) })
    }
    #[inline(always)]
    fn select(mask: Wide<Self>, a: Self, b: Self) -> Self {
        unsafe { _mm256_blendv_pd(b, a, mask.0) }
    }
    #[inline(always)]
    fn bits(mask: Wide<Self>) -> u32 {
        unsafe { _mm256_movemask_pd(mask.0) as u32 }
    }
    #[inline(always)]
    fn first(count: usize) -> Wide<Self> {
        unsafe { _mm256_setr_pd(0.0, 1.0, 2.0, 3.0) }.lt(Self::splat(count as f64))
    }
    #[inline(always)]
    fn sum(self) -> f64 {
        unsafe { _mm_add_pd(_mm256_castpd256_pd128(self), _mm256_extractf128_pd::<1>(self)) }.sum()
    }
    #[inline(always)]
    fn round(self) -> Self {
        unsafe { _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self) }
    }
    #[inline(always)]
    unsafe fn narrow(from: *const f64, origin: f64) -> Self {
        unsafe { Self::load(from) }.sub(Self::splat(origin))
    }
    #[inline(always)]
    unsafe fn rows(rows: *const [f64; 4], slots: *const u32) -> [Self; 4] {
        unsafe {
            let at = |k: usize| _mm256_loadu_pd(row(rows, slots.add(k)));
            let (a, b, c, d) = (at(0), at(1), at(2), at(3));
            let (xz, yw) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            let (xz2, yw2) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
            [
                _mm256_permute2f128_pd::<0x20>(xz, xz2),
                _mm256_permute2f128_pd::<0x20>(yw, yw2),
                _mm256_permute2f128_pd::<0x31>(xz, xz2),
                _mm256_permute2f128_pd::<0x31>(yw, yw2),
            ]
        }
    }
}

impl Register for __m512d {
    type Mask = Narrow<__mmask8>;
    type Double = Self;
    #[inline(always)]
    fn add_to(self, sums: &mut [Packed<Self>; 2]) {
        sums[0] = sums[0] + Packed(self);
    }
    const FUSED: bool = true;
    const GUESSED_ROOT: bool = true;
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        unsafe { _mm512_fmadd_pd(self, a, b) }
    }
    #[inline(always)]
    fn lt(self, o: Self) -> Narrow<__mmask8> {
        Narrow(unsafe { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self, o) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> Narrow<__mmask8> {
        Narrow(unsafe { _mm512_cmp_pd_mask::<_CMP_LE_OQ>(self, o) })
    }
    #[inline(always)]
    fn select(mask: Narrow<__mmask8>, a: Self, b: Self) -> Self {
        unsafe { _mm512_mask_blend_pd(mask.0, b, a) }
    }
    #[inline(always)]
    fn bits(mask: Narrow<__mmask8>) -> u32 {
        u32::from(mask.0)
    }
    #[inline(always)]
    fn first(count: usize) -> Narrow<__mmask8> {
        Narrow(((1u32 << count.min(8)) - 1) as __mmask8)
    }
    #[inline(always)]
    fn sum(self) -> f64 {
        unsafe { _mm256_add_pd(_mm512_castpd512_pd256(self), _mm512_extractf64x4_pd::<1>(self)) }.sum()
    }
    #[inline(always)]
    fn round(self) -> Self {
        unsafe { _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self) }
    }
    #[inline(always)]
    fn scaled(self, n: Self) -> Self {
        unsafe { _mm512_scalef_pd(self, n) }
    }
    #[inline(always)]
    unsafe fn narrow(from: *const f64, origin: f64) -> Self {
        unsafe { Self::load(from) }.sub(Self::splat(origin))
    }
    #[inline(always)]
    unsafe fn rows(rows: *const [f64; 4], slots: *const u32) -> [Self; 4] {
        unsafe {
            // rows k and k + 2 side by side: after interleaving, the pieces of two registers stand in order
            let two = |k: usize| {
                let low = _mm512_castpd256_pd512(_mm256_loadu_pd(row(rows, slots.add(k))));
                _mm512_insertf64x4::<1>(low, _mm256_loadu_pd(row(rows, slots.add(k + 2))))
            };
            let (a, b, c, d) = (two(0), two(1), two(4), two(5));
            let (xz, yw) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
            let (xz2, yw2) = (_mm512_unpacklo_pd(c, d), _mm512_unpackhi_pd(c, d));
            [
                _mm512_shuffle_f64x2::<0b10_00_10_00>(xz, xz2),
                _mm512_shuffle_f64x2::<0b10_00_10_00>(yw, yw2),
                _mm512_shuffle_f64x2::<0b11_01_11_01>(xz, xz2),
                _mm512_shuffle_f64x2::<0b11_01_11_01>(yw, yw2),
            ]
        }
    }
}

impl Register for __m128 {
    type Mask = Wide<Self>;
    type Double = __m128d;
    #[inline(always)]
    fn add_to(self, sums: &mut [Packed<__m128d>; 2]) {
        let (low, high) = unsafe { (_mm_cvtps_pd(self), _mm_cvtps_pd(_mm_movehl_ps(self, self))) };
        sums[0] = sums[0] + Packed(low).odd();
        sums[1] = sums[1] + Packed(high).odd();
    }
    #[inline(always)]
    fn between(a: Self, b: Self) -> Self {
        unsafe { _mm_cvtepi32_ps(_mm_castps_si128(b.minus(a))) }
    }
    #[inline(always)]
    fn onto(self, x: Self, sum: Self) -> Self {
        unsafe { _mm_castsi128_ps(_mm_cvtps_epi32(self.mul(x))) }.plus(sum)
    }
    #[inline(always)]
    fn since(self, _: Self) -> f64 {
        unsafe {
            let whole = _mm_castps_si128(self);
            let high = _mm_unpackhi_epi64(whole, whole);
            _mm_add_pd(_mm_cvtepi32_pd(whole), _mm_cvtepi32_pd(high))
        }
        .sum()
    }
    const FUSED: bool = false;
    const GUESSED_ROOT: bool = false;
    #[inline(always)]
    fn lt(self, o: Self) -> Wide<Self> {
        Wide(unsafe { _mm_cmplt_ps(self, o) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> Wide<Self> {
        Wide(unsafe { _mm_cmple_ps(self, o) })
    }
    #[inline(always)]
    fn select(mask: Wide<Self>, a: Self, b: Self) -> Self {
        unsafe { _mm_or_ps(_mm_and_ps(mask.0, a), _mm_andnot_ps(mask.0, b)) }
    }
    #[inline(always)]
    fn bits(mask: Wide<Self>) -> u32 {
        unsafe { _mm_movemask_ps(mask.0) as u32 }
    }
    #[inline(always)]
    fn first(count: usize) -> Wide<Self> {
        unsafe { _mm_setr_ps(0.0, 1.0, 2.0, 3.0) }.lt(Self::splat(count as f32))
    }
    #[inline(always)]
    fn sum(self) -> f64 {
        unsafe { _mm_add_pd(_mm_cvtps_pd(self), _mm_cvtps_pd(_mm_movehl_ps(self, self))) }.sum()
    }
    #[inline(always)]
    unsafe fn narrow(from: *const f64, origin: f64) -> Self {
        unsafe {
            let (low, high) = (__m128d::narrow(from, origin), __m128d::narrow(from.add(2), origin));
            _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high))
        }
    }
    #[inline(always)]
    unsafe fn rows(rows: *const [f32; 4], slots: *const u32) -> [Self; 4] {
        unsafe {
            let at = |k: usize| _mm_loadu_ps(row(rows, slots.add(k)));
            let (a, b, c, d) = (at(0), at(1), at(2), at(3));
            let (xy, zw) = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
            let (xy2, zw2) = (_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
            [_mm_movelh_ps(xy, xy2), _mm_movehl_ps(xy2, xy), _mm_movelh_ps(zw, zw2), _mm_movehl_ps(zw2, zw)]
        }
    }
}

impl Register for __m256 {
    type Mask = Wide<Self>;
    type Double = __m256d;
    #[inline(always)]
    fn add_to(self, sums: &mut [Packed<__m256d>; 2]) {
        let (low, high) = unsafe {
            (_mm256_cvtps_pd(_mm256_castps256_ps128(self)), _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(self)))
        };
        sums[0] = sums[0] + Packed(low).odd();
        sums[1] = sums[1] + Packed(high).odd();
    }
    #[inline(always)]
    fn between(a: Self, b: Self) -> Self {
        unsafe { _mm256_cvtepi32_ps(_mm256_castps_si256(b.minus(a))) }
    }
    #[inline(always)]
    fn onto(self, x: Self, sum: Self) -> Self {
        unsafe { _mm256_castsi256_ps(_mm256_cvtps_epi32(self.mul(x))) }.plus(sum)
    }
    #[inline(always)]
    fn since(self, _: Self) -> f64 {
        unsafe {
            let whole = _mm256_castps_si256(self);
            let (low, high) = (_mm256_castsi256_si128(whole), _mm256_extracti128_si256::<1>(whole));
            _mm256_add_pd(_mm256_cvtepi32_pd(low), _mm256_cvtepi32_pd(high))
        }
        .sum()
    }
    const FUSED: bool = true;
    const GUESSED_ROOT: bool = true;
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        unsafe { _mm256_fmadd_ps(self, a, b) }
    }
    #[inline(always)]
    fn lt(self, o: Self) -> Wide<Self> {
        Wide(unsafe { _mm256_cmp_ps::<_CMP_LT_OQ>(self, o) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> Wide<Self> {
        Wide(unsafe { _mm256_cmp_ps::<_CMP_LE_OQ>(self, o) })
    }
    #[inline(always)]
    fn select(mask: Wide<Self>, a: Self, b: Self) -> Self {
        unsafe { _mm256_blendv_ps(b, a, mask.0) }
    }
    #[inline(always)]
    fn bits(mask: Wide<Self>) -> u32 {
        unsafe { _mm256_movemask_ps(mask.0) as u32 }
    }
    #[inline(always)]
    fn first(count: usize) -> Wide<Self> {
        unsafe { _mm256_setr_ps(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0) }.lt(Self::splat(count as f32))
    }
    #[inline(always)]
    fn sum(self) -> f64 {
        unsafe {
            let (low, high) = (_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
            _mm256_add_pd(_mm256_cvtps_pd(low), _mm256_cvtps_pd(high))
        }
        .sum()
    }
    #[inline(always)]
    fn round(self) -> Self {
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self) }
    }
    #[inline(always)]
    unsafe fn narrow(from: *const f64, origin: f64) -> Self {
        unsafe {
            let (low, high) = (__m256d::narrow(from, origin), __m256d::narrow(from.add(4), origin));
            let low = _mm256_castps128_ps256(_mm256_cvtpd_ps(low));
            _mm256_insertf128_ps::<1>(low, _mm256_cvtpd_ps(high))
        }
    }
    #[inline(always)]
    unsafe fn rows(rows: *const [f32; 4], slots: *const u32) -> [Self; 4] {
        unsafe {
            let two = |k: usize| {
                let low = _mm256_castps128_ps256(_mm_loadu_ps(row(rows, slots.add(k))));
                _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(row(rows, slots.add(k + 4))))
            };
            let (a, b, c, d) = (two(0), two(1), two(2), two(3));
            let (xy, zw) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let (xy2, zw2) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
            [
                _mm256_shuffle_ps::<0b01_00_01_00>(xy, xy2),
                _mm256_shuffle_ps::<0b11_10_11_10>(xy, xy2),
                _mm256_shuffle_ps::<0b01_00_01_00>(zw, zw2),
                _mm256_shuffle_ps::<0b11_10_11_10>(zw, zw2),
            ]
        }
    }
    #[inline(always)]
    unsafe fn compress(mask: Wide<Self>, names: *const u32, to: *mut u32) -> usize {
        let bits = Self::bits(mask);
        unsafe {
            let bytes = _mm_cvtsi64_si128(POSITIONS[bits as usize & 255] as i64);
            let names = _mm256_loadu_si256(names.cast());
            let found = _mm256_permutevar8x32_epi32(names, _mm256_cvtepu8_epi32(bytes));
            _mm256_storeu_si256(to.cast(), found);
        }
        bits.count_ones() as usize
    }
}

impl Register for __m512 {
    type Mask = Narrow<__mmask16>;
    type Double = __m512d;
    #[inline(always)]
    fn add_to(self, sums: &mut [Packed<__m512d>; 2]) {
        let (low, high) = unsafe {
            (
                _mm512_cvtps_pd(_mm512_castps512_ps256(self)),
                _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(self)),
            )
        };
        sums[0] = sums[0] + Packed(low).odd();
        sums[1] = sums[1] + Packed(high).odd();
    }
    #[inline(always)]
    fn between(a: Self, b: Self) -> Self {
        unsafe { _mm512_cvtepi32_ps(_mm512_castps_si512(b.minus(a))) }
    }
    #[inline(always)]
    fn onto(self, x: Self, sum: Self) -> Self {
        unsafe { _mm512_castsi512_ps(_mm512_cvtps_epi32(self.mul(x))) }.plus(sum)
    }
    #[inline(always)]
    fn since(self, _: Self) -> f64 {
        unsafe {
            let whole = _mm512_castps_si512(self);
            let (low, high) = (_mm512_castsi512_si256(whole), _mm512_extracti64x4_epi64::<1>(whole));
            _mm512_add_pd(_mm512_cvtepi32_pd(low), _mm512_cvtepi32_pd(high))
        }
        .sum()
    }
    const FUSED: bool = true;
    const GUESSED_ROOT: bool = true;
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        unsafe { _mm512_fmadd_ps(self, a, b) }
    }
    #[inline(always)]
    fn lt(self, o: Self) -> Narrow<__mmask16> {
        Narrow(unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self, o) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> Narrow<__mmask16> {
        Narrow(unsafe { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(self, o) })
    }
    #[inline(always)]
    fn select(mask: Narrow<__mmask16>, a: Self, b: Self) -> Self {
        unsafe { _mm512_mask_blend_ps(mask.0, b, a) }
    }
    #[inline(always)]
    fn bits(mask: Narrow<__mmask16>) -> u32 {
        u32::from(mask.0)
    }
    #[inline(always)]
    fn first(count: usize) -> Narrow<__mmask16> {
        Narrow(((1u32 << count.min(16)) - 1) as __mmask16)
    }
    #[inline(always)]
    fn sum(self) -> f64 {
        unsafe {
            let (low, high) = (_mm512_castps512_ps256(self), _mm512_extractf32x8_ps::<1>(self));
            _mm512_add_pd(_mm512_cvtps_pd(low), _mm512_cvtps_pd(high))
        }
        .sum()
    }
    #[inline(always)]
    fn round(self) -> Self {
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self) }
    }
    #[inline(always)]
    fn scaled(self, n: Self) -> Self {
        unsafe { _mm512_scalef_ps(self, n) }
    }
    #[inline(always)]
    unsafe fn narrow(from: *const f64, origin: f64) -> Self {
        unsafe {
            let (low, high) = (__m512d::narrow(from, origin), __m512d::narrow(from.add(8), origin));
            let low = _mm512_castps256_ps512(_mm512_cvtpd_ps(low));
            _mm512_insertf32x8::<1>(low, _mm512_cvtpd_ps(high))
        }
    }
    #[inline(always)]
    unsafe fn rows(rows: *const [f32; 4], slots: *const u32) -> [Self; 4] {
        unsafe {
            let at = |k: usize| _mm_loadu_ps(row(rows, slots.add(k)));
            let four = |k: usize| {
                let a = _mm512_castps128_ps512(at(k));
                let a = _mm512_insertf32x4::<1>(a, at(k + 4));
                let a = _mm512_insertf32x4::<2>(a, at(k + 8));
                _mm512_insertf32x4::<3>(a, at(k + 12))
            };
            let (a, b, c, d) = (four(0), four(1), four(2), four(3));
            let (xy, zw) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let (xy2, zw2) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
            [
                _mm512_shuffle_ps::<0b01_00_01_00>(xy, xy2),
                _mm512_shuffle_ps::<0b11_10_11_10>(xy, xy2),
                _mm512_shuffle_ps::<0b01_00_01_00>(zw, zw2),
                _mm512_shuffle_ps::<0b11_10_11_10>(zw, zw2),
            ]
        }
    }
    #[inline(always)]
    unsafe fn compress(mask: Narrow<__mmask16>, names: *const u32, to: *mut u32) -> usize {
        unsafe {
            // (compressing straight to memory is very slow on some processors)
            let names = _mm512_loadu_si512(names.cast());
            _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(mask.0, names));
        }
        mask.0.count_ones() as usize
    }
}
