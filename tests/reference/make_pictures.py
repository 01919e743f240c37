"""Writes images in the formats that clients send, and their pixels by transformers' load_image.

    python make_pictures.py      into ../golden/pictures

Each is a file of a few hundred bytes: kinds of JPEG (grey, CMYK, YCCK, progressive) and PNG (palettes, 1 to 16
bits, alpha, transparent colours), and each EXIF orientation in both.  The pixels are those of Pillow:
exif_transpose, then convert("RGB").  16-bit greys differ: Pillow makes everything above 255 white,
while here the upper byte counts, as in Pillow's 16-bit colours.
"""
import base64
import io
import json
import os
import struct
import sys
import zlib

from PIL import Image, ImageOps, __version__

W, H = 13, 9
HERE = os.path.dirname(os.path.abspath(__file__))


def picture(mode="RGB"):
    im = Image.new("RGB", (W, H))
    im.putdata([(x * 19, y * 28, (x * y * 3 + 40) % 256) for y in range(H) for x in range(W)])
    return im.convert(mode)


def saved(im, kind, **how):
    out = io.BytesIO()
    im.save(out, kind, **how)
    return out.getvalue()


def exif(orientation, order="<", kind=3):
    value = struct.pack(order + ("HH" if kind == 3 else "I"), *((orientation, 0) if kind == 3 else (orientation,)))
    entries = struct.pack(order + "HHI4s", 0x010f, 2, 4, b"abc\0") + struct.pack(order + "HHI4s", 0x0112, kind, 1, value)
    return (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8) + struct.pack(order + "H", 2) + entries + bytes(4)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(colour, depth, rows, *more, behind=()):
    head = struct.pack(">IIBBBBB", W, H, depth, colour, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(more) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows))) + b"".join(behind) + chunk(b"IEND", b""))


def samples(n, depth, most=None):
    """Returns rows of W pixels with n samples of `depth` bits."""
    most = most or (1 << depth) - 1
    rows = []
    for y in range(H):
        values = [(x * 4099 + y * 7919 + c * 23171) % (most + 1) for x in range(W) for c in range(n)]
        if depth >= 8:
            rows.append(b"".join(v.to_bytes(depth // 8, "big") for v in values))
        else:
            bits = "".join(format(v, f"0{depth}b") for v in values)
            bits += "0" * (-len(bits) % 8)
            rows.append(bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)))
    return rows


def files():
    rgb = picture()
    yield "jpeg", saved(rgb, "JPEG", quality=95, subsampling=0)
    yield "jpeg-grey", saved(picture("L"), "JPEG", quality=95)
    yield "jpeg-progressive", saved(rgb, "JPEG", quality=95, subsampling=0, progressive=True)
    yield "jpeg-rgb", saved(rgb, "JPEG", quality=95, keep_rgb=True)
    cmyk = picture("CMYK")
    cmyk.putdata([(c, m, y, (i * 7) % 200) for i, (c, m, y, _) in enumerate(cmyk.get_flattened_data())])
    cmyk = saved(cmyk, "JPEG", quality=95)
    adobe = cmyk.index(b"\xff\xee")
    yield "jpeg-cmyk", cmyk
    yield "jpeg-cmyk-without-adobe", cmyk[:adobe] + cmyk[adobe + 16:]
    yield "jpeg-ycck", cmyk[:adobe + 15] + b"\2" + cmyk[adobe + 16:]
    for o in range(1, 9):
        yield f"jpeg-exif-{o}", saved(rgb, "JPEG", quality=95, subsampling=0, exif=b"Exif\0\0" + exif(o, "<>"[o % 2]))
    yield "jpeg-exif-long", saved(rgb, "JPEG", quality=95, subsampling=0, exif=b"Exif\0\0" + exif(6, ">", 4))
    yield "jpeg-exif-9", saved(rgb, "JPEG", quality=95, subsampling=0, exif=b"Exif\0\0" + exif(9))
    plain = saved(rgb, "JPEG", quality=95, subsampling=0)
    xmp = b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta><rdf:Description tiff:Orientation=\"8\"/></x:xmpmeta>"
    yield "jpeg-xmp", plain[:2] + b"\xff\xe1" + struct.pack(">H", len(xmp) + 2) + xmp + plain[2:]
    yield "jpeg-filled", plain[:20] + bytes(5) + plain[20:]
    yield "jpeg-newer-jfif", plain[:11] + b"\2" + plain[12:]
    yield "jpeg-trailing", plain + b"more"
    yield "jpeg-cmyk-exif-6", cmyk[:2] + b"\xff\xe1" + struct.pack(">H", len(exif(6)) + 8) + b"Exif\0\0" + exif(6) + cmyk[2:]
    for depth in (1, 2, 4, 8, 16):
        yield f"png-grey-{depth}", png(0, depth, samples(1, depth))
    yield "png-grey-transparent", png(0, 8, samples(1, 8), chunk(b"tRNS", struct.pack(">H", 7)))
    for depth in (8, 16):
        yield f"png-rgb-{depth}", png(2, depth, samples(3, depth))
        yield f"png-grey-alpha-{depth}", png(4, depth, samples(2, depth))
        yield f"png-rgb-alpha-{depth}", png(6, depth, samples(4, depth))
    yield "png-rgb-transparent", png(2, 8, samples(3, 8), chunk(b"tRNS", struct.pack(">HHH", 7, 7, 7)))
    for depth in (1, 2, 4, 8):
        n = min(1 << depth, 50)
        table = chunk(b"PLTE", b"".join(bytes((i * 5 % 256, 255 - i * 3, i * 91 % 256)) for i in range(n)))
        yield f"png-palette-{depth}", png(3, depth, samples(1, depth, n - 1), table)
        yield f"png-palette-alpha-{depth}", png(3, depth, samples(1, depth, n - 1), table, chunk(b"tRNS", bytes(range(n))))
    yield "png-gamma", png(2, 8, samples(3, 8), chunk(b"gAMA", struct.pack(">I", 45455)))
    for o in (1, 3, 6, 8):
        yield f"png-exif-{o}", png(2, 8, samples(3, 8), chunk(b"eXIf", exif(o, ">")))
    yield "png-exif-behind", png(2, 8, samples(3, 8), behind=(chunk(b"eXIf", exif(5)),))


def read(data):
    im = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if im.mode == "I;16":
        im = Image.frombytes("L", im.size, im.tobytes()[1::2])
    return im.convert("RGB")


def main():
    cases = []
    for name, data in files():
        im = read(data)
        cases.append({"name": name, "w": im.width, "h": im.height, "file": base64.b64encode(data).decode(),
                      "rgb": base64.b64encode(im.tobytes()).decode()})
    folder = os.path.join(HERE, "..", "golden", "pictures")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "pictures.json"), "w", encoding="utf-8") as f:
        f.write('{"made": "make_pictures.py, Pillow %s",\n "cases": [\n' % __version__)
        f.write(",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
    print(len(cases), "pictures", file=sys.stderr)


if __name__ == "__main__":
    main()
