"""What a function's name tells: whether it only passes allocations on, and how it is said in short."""

import fnmatch
import re

# Of C and its libraries.
_C = re.compile(r"_*(libc_|interceptor_)?(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign|"
                r"valloc|pvalloc)")
# What programs and libraries call their own, by custom: these end the program, or count, and do nothing else.
_CUSTOMARY = re.compile(r"[xz](malloc|calloc|realloc|zalloc|mallocarray|reallocarray)|"
                        r"g_(try_)?(malloc|malloc0|realloc)(_n)?|llvm::(safe_(malloc|calloc|realloc)|allocate_buffer)")
# Of C++ and Rust: operators, the standard allocators, and what stands between them and a container.
_LANGUAGE = re.compile(
    r"operator new|__rust\w*alloc|__(rdl|rg)_\w*alloc|__rustc::|alloc::alloc::|<alloc::alloc::Global\b|"
    r"alloc::raw_vec::(\w+::)?(allocate|try_allocate|with_capacity|finish_grow)|"
    r"(std|__gnu_cxx)::(__1::)?(allocator|allocator_traits|__?new_allocator|__libcpp_allocate|__allocate_at_least|"
    r"__libcpp_operator_new|__allocate_guarded)\b|"
    r"std::(__cxx11::|__detail::)?\w+::(_M_allocate|_M_get_node)")
# The standard libraries of C++ (mangled names, for these begin with a template's return type) and Rust.
_STANDARD_MANGLED = re.compile(r"_ZN?[VK]*(St|S[absiod]|9__gnu_cxx|10__cxxabiv1)")
_STANDARD = re.compile(r"<*&?(mut |dyn )*(std|core|alloc|hashbrown|__gnu_cxx)::|"
                       r"<([A-Z]\w*|[iu](8|16|32|64|128|size)|f32|f64|bool|char|str) as (std|core|alloc)::")
_RUNTIME_MODULE = re.compile(r"(libc|libm|libpthread|libdl|librt|ld-linux\S*|ld64|ld|libstdc\+\+|libc\+\+|libc\+\+abi|"
                             r"libgcc_s|libunwind)[.-]|ld-musl-|libc\.musl-")
RECORDER = "libreheap-record.so"
_STARTUP = re.compile(r"_start|_?_?libc_start_(main|call_main)(_impl)?|start_thread|(__)?clone3?")


class Passing:
    """The functions that only pass allocations on: the languages' own and those the user named."""

    def __init__(self, wrappers: tuple[str, ...] = ()):
        self._named = [re.compile(fnmatch.translate(name)) for name in wrappers]

    def __call__(self, function: str, module: str) -> bool:
        name = short(function)
        return bool(base(module) == RECORDER or _C.fullmatch(name) or _CUSTOMARY.fullmatch(name)
                    or _LANGUAGE.match(name) or any(one.match(name) for one in self._named))


def is_library(function: str, mangled: str, module: str) -> bool:
    """Of the C library or a language's standard library: what calls it is the program's own."""
    return bool(_RUNTIME_MODULE.match(base(module)) or _STANDARD_MANGLED.match(mangled) or _STANDARD.match(function))


def is_startup(function: str, module: str) -> bool:
    """What a thread begins with, before anything of the program."""
    return bool(_STARTUP.fullmatch(function) or _RUNTIME_MODULE.match(base(module)))


def base(path: str) -> str:
    return printable(path.rpartition("/")[2])


def printable(name: str) -> str:
    """On one line, and without what a terminal would obey."""
    return name if name.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in name)


# ---- in short ---------------------------------------------------------------------------------

_OPERATORS = re.compile(r"\boperator\s*(\(\)|<=>|<<=?|>>=?|->\*?|<=?|>=?|new\b(\[\])?|delete\b(\[\])?|(?=[A-Za-z_]))")
_STAND_INS = str.maketrans("<>() ", "\x01\x02\x03\x04\x05")
_STAND_INS_BACK = str.maketrans("\x01\x02\x03\x04\x05", "<>() ")


def short(function: str) -> str:
    """Without parameters, template arguments and return type: std::vector::push_back."""
    if function.startswith("<") or not any(mark in function for mark in "<( "):
        return function  # Rust's <Type as Trait>::function has nothing to lose
    text = re.sub(r" ?\[(abi:|clone )[^\]]*\]", "", function)
    text = text.replace("(anonymous namespace)", "\x03anonymous\x05namespace\x04")
    text = _OPERATORS.sub(lambda found: found.group().translate(_STAND_INS), text)
    text = _without(re.sub(r"\{[^{}]*\}", lambda found: found.group().translate(_STAND_INS), text), "<", ">")
    if "(*" in text.partition("(")[1] + text.partition("(")[2][:1]:
        return function  # what it returns is a pointer to a function, and stands around its name
    text = re.sub(r"( const)?( &&?)?$", "", _without(text, "(", ")").rstrip())
    return text.rpartition(" ")[2].translate(_STAND_INS_BACK) or function


def _without(text: str, opening: str, closing: str) -> str:
    kept, depth = [], 0
    for letter in text:
        if letter == opening:
            depth += 1
        elif letter == closing:
            depth = max(0, depth - 1)
        elif not depth:
            kept.append(letter)
    return "".join(kept)
