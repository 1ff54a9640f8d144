"""What two extension modules make: of XML, and of images."""

import io

import lxml.etree
import PIL.Image
import PIL.ImageFilter

ROUNDS = 4
ROWS = 600
ODD = lxml.etree.XSLT(lxml.etree.fromstring("""
    <xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
      <xsl:template match="/">
        <odd>
          <xsl:for-each select="//row[@number mod 2 = 1]">
            <xsl:sort select="@number" data-type="number" order="descending"/>
            <xsl:copy-of select="."/>
          </xsl:for-each>
        </odd>
      </xsl:template>
    </xsl:stylesheet>"""))


def transform() -> str:
    table = lxml.etree.Element("table")
    for number in range(ROWS):
        lxml.etree.SubElement(table, "row", number=str(number)).text = "text " * (number % 90)
    again = lxml.etree.fromstring(lxml.etree.tostring(table))
    return f"xml {len(again.xpath('//row[string-length() > 100]'))} {len(str(ODD(again)))}"


def draw() -> str:
    image = PIL.Image.effect_mandelbrot((200, 150), (-2, -1, 1, 1), 40).convert("RGB")
    image = image.filter(PIL.ImageFilter.GaussianBlur(2)).resize((331, 241))
    said = ["image"]
    for kind in ("PNG", "JPEG", "WEBP", "TIFF", "GIF"):
        file = io.BytesIO()
        image.save(file, kind)
        file.seek(0)
        said.append(f"{kind} {len(file.getvalue())} {PIL.Image.open(file).convert('L').histogram()[9]}")
    return " ".join(said)


for _ in range(ROUNDS):
    print(transform())
    print(draw())
