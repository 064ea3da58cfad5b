#include "purine/trace/html_report.h"

#include <string_view>

#include "purine/core/error.h"
#include "purine/trace/report_data.h"
#include "purine/trace/report_page.h"

namespace purine::trace {

std::string html_report(std::span<const Trace> ranks, const ReportContext& context) {
  constexpr std::string_view mark = "/*DATA*/";
  const std::string_view page = report_page();
  const std::size_t place = page.find(mark);
  PURINE_CHECK(place != std::string_view::npos);
  std::string text(page.substr(0, place));
  // No text of the data can end the element that it stands in.
  for (const char each : report_data(ranks, context)) {
    if (each == '<') {
      text += "\\u003c";
    } else {
      text += each;
    }
  }
  text += page.substr(place + mark.size());
  return text;
}

}  // namespace purine::trace
