// SPDX-License-Identifier: Apache-2.0

// Package report draws what a run did: the curve of the best score so far, as SVG, and the lines on a terminal.
//
// # What it does not do
//
// It decides nothing, and it escapes what it prints: a note or an output may be a stranger's.
package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// Curve is a picture of a run. Less is better.
type Curve struct {
	Title  string
	Unit   string // of the values, for the axis
	Points []Point
	Levels []Level // what others reach, as horizontal lines
}

// Point is one variant that was measured.
type Point struct {
	Variant  int
	Value    float64
	Accepted bool
}

// Level is a value with a name.
type Level struct {
	Name  string
	Value float64
}

const (
	width, height          = 860, 420
	left, right, top, down = 64, 190, 44, 52
)

// SVG draws the curve. It is a whole file, without anything that a browser would load or run.
func (c *Curve) SVG() []byte {
	p := c.scale()
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="15">%s</text>`+"\n", left, escape(c.Title))
	p.axes(&b, c.Unit)
	for _, l := range c.Levels {
		y := p.y(l.Value)
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#b05000" stroke-dasharray="5 4"/>`+"\n", left, y, width-right, y)
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" fill="#b05000">%s %.2f</text>`+"\n", width-right+6, y+4, escape(l.Name), l.Value)
	}
	c.draw(&b, p)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// draw puts a dot for each variant, and the line of the best so far.
func (c *Curve) draw(b *bytes.Buffer, p plot) {
	var line strings.Builder
	best := math.Inf(1)
	for _, v := range c.Points {
		color := "#b0b8c0"
		if v.Accepted {
			color = "#0a7d33"
		}
		if v.Value <= p.high {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.2" fill="%s"/>`+"\n", p.x(v.Variant), p.y(v.Value), color)
		}
		if !v.Accepted {
			continue
		}
		if math.IsInf(best, 1) {
			fmt.Fprintf(&line, "M%.1f %.1f", p.x(v.Variant), p.y(v.Value))
		} else {
			fmt.Fprintf(&line, "H%.1fV%.1f", p.x(v.Variant), p.y(v.Value))
		}
		best = v.Value
	}
	if math.IsInf(best, 1) {
		return
	}
	fmt.Fprintf(&line, "H%.1f", p.x(p.last))
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="#0a7d33" stroke-width="2"/>`+"\n", line.String())
	fmt.Fprintf(b, `<text x="%d" y="%.1f" fill="#0a7d33">best found %.2f</text>`+"\n", width-right+6, p.y(best)+4, best)
}

// plot maps variants and values to the picture.
type plot struct {
	last      int
	low, high float64
}

// scale leaves out what is far worse than the worst level or accepted value: one bad variant would flatten the curve.
func (c *Curve) scale() plot {
	p := plot{last: 1, low: math.Inf(1), high: math.Inf(-1)}
	for _, l := range c.Levels {
		p.low, p.high = min(p.low, l.Value), max(p.high, l.Value)
	}
	for _, v := range c.Points {
		p.last = max(p.last, v.Variant)
		p.low = min(p.low, v.Value)
		if v.Accepted {
			p.high = max(p.high, v.Value)
		}
	}
	if !(p.low < p.high) {
		if math.IsInf(p.low, 0) || math.IsNaN(p.low) {
			p.low = 0
		}
		p.high = p.low + 1
	}
	margin := (p.high - p.low) / 12
	p.low, p.high = max(0, p.low-margin), p.high+margin
	return p
}

func (p plot) x(variant int) float64 {
	return left + float64(variant)/float64(p.last)*(width-left-right)
}

func (p plot) y(value float64) float64 {
	return height - down - (value-p.low)/(p.high-p.low)*(height-top-down)
}

func (p plot) axes(b *bytes.Buffer, unit string) {
	fmt.Fprintf(b, `<path d="M%d %dV%dH%d" fill="none" stroke="#404040"/>`+"\n", left, top, height-down, width-right)
	step := step(p.high - p.low)
	for v := math.Ceil(p.low/step) * step; v <= p.high; v += step {
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-6, p.y(v)+4, trim(v))
	}
	for i := range 5 {
		variant := p.last * i / 4
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", p.x(variant), height-down+18, variant)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">variants</text>`+"\n", (left+width-right)/2-24, height-14)
	fmt.Fprintf(b, `<text x="14" y="%d" transform="rotate(-90 14 %d)">%s</text>`+"\n", height-down, height-down, escape(unit))
}

// step is a round number that divides the range into four to ten parts.
func step(span float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(span)))
	for _, f := range []float64{0.1, 0.2, 0.5} {
		if span/(unit*f) <= 10 {
			return unit * f
		}
	}
	return unit
}

func trim(v float64) string {
	s := fmt.Sprintf("%.3f", v)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a bytes.Buffer does not fail
	return b.String()
}
