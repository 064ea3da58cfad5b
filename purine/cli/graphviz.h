// Drawings made by graphviz.
#pragma once

#include <string>

namespace purine::cli {

/// The SVG that graphviz's command `dot` makes of a text in its language. Throws Error where the command is
/// not there or fails.
std::string draw_svg(const std::string& dot);

/// How wide such a drawing is, in points; 0 for what is none.
double svg_width(const std::string& svg);

}  // namespace purine::cli
