// The page of a report, without its data. CMake makes it of the files under report/.
#pragma once

#include <string_view>

namespace purine::trace {

/// HTML with style and scripts; `/*DATA*/` stands where the data goes.
std::string_view report_page();

}  // namespace purine::trace
