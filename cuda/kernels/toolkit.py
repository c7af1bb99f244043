"""The parts of CUDA 12.9 that come as libraries, for build.sh.

toolkit.py ptx LIBRARY SOURCE ARCHITECTURE OUTPUT       compiles a .cu file by NVRTC, in the folder that includes start from
toolkit.py fatbin LIBRARY OUTPUT KIND:ARCHITECTURE:FILE...   packs cubins (kind elf) and PTX (kind ptx) by nvFatbin
"""
import ctypes
import os
import sys


def ptx(library, source, architecture, output):
    nvrtc = ctypes.CDLL(library)
    with open(source, "rb") as f:
        text = f.read()
    program = ctypes.c_void_p()
    check("nvrtc", nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.encode(), 0, None, None))
    options = strings(["-std=c++17", "-arch=compute_" + architecture, "-I" + os.path.dirname(source)])
    failed = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = result(nvrtc, "ProgramLog", program)
    if log.strip():
        sys.stderr.write(log.decode(errors="replace") + "\n")
    check("nvrtc", nvrtc, failed)
    with open(output, "wb") as f:
        f.write(result(nvrtc, "PTX", program))


def result(nvrtc, what, program):
    size = ctypes.c_size_t()
    check("nvrtc", nvrtc, getattr(nvrtc, "nvrtcGet%sSize" % what)(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check("nvrtc", nvrtc, getattr(nvrtc, "nvrtcGet" + what)(program, text))
    return text.value


def fatbin(library, output, *images):
    nvfatbin = ctypes.CDLL(library)
    handle = ctypes.c_void_p()
    options = strings(["-64", "-host=linux", "-compress-mode=size"])
    check("nvFatbin", nvfatbin, nvfatbin.nvFatbinCreate(ctypes.byref(handle), options, ctypes.c_size_t(len(options))))
    for image in images:
        kind, architecture, path = image.split(":", 2)
        with open(path, "rb") as f:
            code = f.read()
        if kind == "elf":
            failed = nvfatbin.nvFatbinAddCubin(handle, code, ctypes.c_size_t(len(code)), architecture.encode(), None)
        else:  # with the final zero, which counts
            failed = nvfatbin.nvFatbinAddPTX(handle, code + b"\0", ctypes.c_size_t(len(code) + 1), architecture.encode(), None, b"")
        check("nvFatbin", nvfatbin, failed)
    size = ctypes.c_size_t()
    check("nvFatbin", nvfatbin, nvfatbin.nvFatbinSize(handle, ctypes.byref(size)))
    packed = ctypes.create_string_buffer(size.value)
    check("nvFatbin", nvfatbin, nvfatbin.nvFatbinGet(handle, packed))
    with open(output, "wb") as f:
        f.write(packed.raw)


def strings(items):
    return (ctypes.c_char_p * len(items))(*[i.encode() for i in items])


def check(name, library, code):
    if code != 0:
        text = getattr(library, name + "GetErrorString")
        text.restype = ctypes.c_char_p
        sys.exit("%s: %s" % (name, text(code).decode()))


if __name__ == "__main__":
    {"ptx": ptx, "fatbin": fatbin}[sys.argv[1]](*sys.argv[2:])
