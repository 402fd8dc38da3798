//! Parameters as records: the same fields, in any kind of number.

use std::marker::PhantomData;

/// A fixed set of fields, all of type `T`, in a fixed order.
pub trait Record<T>: Copy {
    /// How many fields.
    const LEN: usize;
    /// Makes the record from its fields in order.
    fn from_fn(f: impl FnMut(usize) -> T) -> Self;
    /// Field number `k`.
    fn field(&self, k: usize) -> T;
    /// The same record in another kind of number.
    #[inline(always)]
    fn convert<U, R: Record<U>>(&self, mut f: impl FnMut(T) -> U) -> R {
        R::from_fn(|k| f(self.field(k)))
    }
}

/// Declares a record with named fields: `record!(/** doc */ LennardJonesParams { epsilon, sigma })`.
#[macro_export]
macro_rules! record {
    ($(#[$doc:meta])* $Name:ident { $($(#[$field_doc:meta])* $field:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Name<T> { $($(#[$field_doc])* #[allow(missing_docs)] pub $field: T),+ }
        impl<T: Copy> $crate::Record<T> for $Name<T> {
            const LEN: usize = [$(stringify!($field)),+].len();
            #[inline(always)]
            fn from_fn(mut f: impl FnMut(usize) -> T) -> Self {
                let mut next = 0;
                $( let $field = { next += 1; f(next - 1) }; )+
                let _ = next;
                $Name { $($field),+ }
            }
            #[inline(always)]
            fn field(&self, k: usize) -> T { [$(self.$field),+][k] }
        }
    };
}

/// A record without fields.
#[derive(Clone, Copy, Debug)]
pub struct Nothing<T>(PhantomData<T>);

impl<T: Copy> Record<T> for Nothing<T> {
    const LEN: usize = 0;
    #[inline(always)]
    fn from_fn(_: impl FnMut(usize) -> T) -> Self {
        Nothing(PhantomData)
    }
    #[inline(always)]
    fn field(&self, k: usize) -> T {
        panic!("a record without fields has no field {k}")
    }
}

/// Two records, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Both<A, B> {
    /// The fields that come first.
    pub first: A,
    /// The fields that follow.
    pub second: B,
}

impl<T, A: Record<T>, B: Record<T>> Record<T> for Both<A, B> {
    const LEN: usize = A::LEN + B::LEN;
    #[inline(always)]
    fn from_fn(mut f: impl FnMut(usize) -> T) -> Self {
        let first = A::from_fn(&mut f);
        Both { first, second: B::from_fn(|k| f(A::LEN + k)) }
    }
    #[inline(always)]
    fn field(&self, k: usize) -> T {
        if k < A::LEN { self.first.field(k) } else { self.second.field(k - A::LEN) }
    }
}
