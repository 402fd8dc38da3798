"""Values of elementary functions in 40 digits: python3 make.py 25 >table.txt (needs mpmath).

The argument says how many arguments each region of a function gets.
"""
import random, struct, sys
import mpmath as mp

mp.mp.dps = 40
many = int(sys.argv[1])
random.seed(20)
uniform = random.uniform

def bits(x, single):
    return "%08x" % struct.unpack("<I", struct.pack("<f", x))[0] if single else \
           "%016x" % struct.unpack("<Q", struct.pack("<d", x))[0]

def fits(x, single):
    return struct.unpack("<f", struct.pack("<f", x))[0] if single else float(x)

def scale(low, high):
    return 2.0 ** uniform(low, high)

def sign():
    return random.choice((-1.0, 1.0))

def near_quarters(last, single):
    """Arguments that are multiples of pi/2 but for very little, and some that are so but for rounding."""
    digits, found = (24 if single else 53), []
    for n in range(1, last):
        exact = n * HALF_PI
        drop = exact.bit_length() - digits
        nearest = ((exact >> (drop - 1)) + 1) >> 1
        found.append((abs((nearest << drop) - exact), float(mp.ldexp(nearest, drop - 250))))
    return [x for _, x in sorted(found)[:2 * many]] + [x for _, x in random.sample(found, many)]

with mp.workdps(90):
    HALF_PI = int(mp.floor(mp.ldexp(mp.pi / 2, 250)))

def arguments(name, single):
    tiny, top = (-149, 127.99) if single else (-1074, 1023.99)
    digits = 24 if single else 53
    edge = lambda: 2.0 ** -uniform(1, digits)
    if name == "exp":
        least, most = (-103.9, 88.72) if single else (-745.1, 709.78)
        return [[uniform(least, most), uniform(-1, 1), sign() * scale(-60, 0),
                 (random.randrange(-100, 100) + 0.5) * float(mp.log(2)), uniform(least, 0.94 * least)]
                for _ in range(many)]
    if name == "ln":
        return [[scale(tiny, top), 1 + sign() * edge(), uniform(0.4, 2.2), 2.0 ** 0.5 * (1 + sign() * edge() * 1e-3)]
                for _ in range(many)]
    if name in ("sin", "cos"):
        last = 13 if single else 20
        return [[sign() * scale(-30, last), uniform(-10, 10), uniform(-2.0 ** last, 2.0 ** last)]
                for _ in range(many)] + [near_quarters(int(2 ** last * 0.6366), single)]
    if name == "tanh":
        return [[sign() * scale(-30, 4.5), uniform(-1, 1), uniform(-3, 3)] for _ in range(many)]
    if name == "acos":
        return [[uniform(-1, 1), sign() * (1 - edge()), sign() * (0.5 + sign() * edge()), sign() * edge()]
                for _ in range(many)]
    if name == "erfc":
        last = 10.05 if single else 27.2
        return [[uniform(-6, 6), uniform(0.3, 0.7), uniform(0, last), sign() * scale(-60, 0), uniform(0.9 * last, last)]
                for _ in range(many)]
    if name == "rsqrt":
        return [[scale(tiny, top), uniform(1, 4), uniform(1, 4)] for _ in range(many)]
    if name == "atan2":
        wide = 60 if single else 400
        return [[(sign() * uniform(0, 1), sign() * uniform(0, 1)), (sign(), sign() * (1 + sign() * edge())),
                 (sign() * scale(-wide, wide), sign() * scale(-wide, wide)),
                 (sign() * scale(-8, 8), sign() * scale(-8, 8))] for _ in range(many)]
    if name == "powf":
        end = 80 if single else 700
        def bound(x):
            x = fits(x, single)
            return x, uniform(-end, end) / float(mp.log(x)) if x != 1 else 1.0
        return [[(scale(-8, 8), random.choice((0.5, -0.5, 1 / 3, 1.5, -2.5, 7.0, -12.3))),
                 (scale(-4, 4), uniform(-10, 10)), bound(scale(0.1, 100)), bound(uniform(0.71, 0.99)),
                 bound(1 + edge())] for _ in range(many)]

def value(name, *x):
    x = [mp.mpf(x) for x in x]
    if name in ("ln", "powf", "rsqrt") and x[0] <= 0:
        return None
    return {"ln": mp.log, "rsqrt": lambda x: 1 / mp.sqrt(x), "powf": mp.power, "atan2": mp.atan2}.get(
        name, getattr(mp, name, None))(*x)

print("# Values of elementary functions, from mpmath", mp.__version__, "with 40 digits; see make.py.")
print("# function, format of the arguments, arguments as bits, value as the bits of the nearest f64, and what is")
print("# missing to the exact value, in 1/1024 of the unit in that number's last place.")
for name in ("exp", "ln", "sin", "cos", "tanh", "acos", "atan2", "erfc", "powf", "rsqrt"):
    for single in (False, True):
        for row in arguments(name, single):
            for x in row:
                x = x if isinstance(x, tuple) else (x,)
                # (an exponent is a plain number in every format)
                x = [fits(y, single and not (name == "powf" and k == 1)) for k, y in enumerate(x)]
                y = value(name, *x)
                if y is None or abs(y) >= mp.mpf(2) ** (128 if single else 1024):
                    continue
                nearest = float(y)
                exponent = max(mp.frexp(y)[1] - 1, -1022) if y else -1022
                rest = mp.ldexp(y - nearest, 52 - exponent)
                fields = [bits(v, single and not (name == "powf" and k == 1)) for k, v in enumerate(x)]
                print(name, "f32" if single else "f64", *fields, bits(nearest, False), int(mp.nint(rest * 1024)))
