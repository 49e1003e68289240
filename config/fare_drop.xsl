<?xml version="1.0" encoding="UTF-8"?>
<!-- Makes the news of a fare that fell into the HTML part of a mail. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html" encoding="UTF-8" doctype-system="about:legacy-compat"/>

  <xsl:template match="/fare-drop">
    <html lang="en">
      <head>
        <title>
          <xsl:value-of select="concat(airline, ': ', route/@origin, ' to ', route/@destination)"/>
        </title>
      </head>
      <body style="font-family: sans-serif; color: #222">
        <h1 style="font-size: 1.2em">
          <xsl:value-of select="route/@origin"/>
          <xsl:text> → </xsl:text>
          <xsl:value-of select="route/@destination"/>
        </h1>
        <p>
          <b><xsl:value-of select="airline"/></b>
          <xsl:text> has lowered its fare by </xsl:text>
          <b><xsl:value-of select="rate-drop"/></b>
          <xsl:text>.</xsl:text>
        </p>
        <p style="font-size: 0.8em; color: #666">You get this mail because you asked to hear of this route.</p>
      </body>
    </html>
  </xsl:template>
</xsl:stylesheet>
