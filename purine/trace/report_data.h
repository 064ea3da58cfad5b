// The data of a report's page.
#pragma once

#include <span>
#include <string>

#include "purine/trace/html_report.h"

namespace purine::trace {

/// As JSON; what the scripts under report/ read.
std::string report_data(std::span<const Trace> ranks, const ReportContext& context);

}  // namespace purine::trace
