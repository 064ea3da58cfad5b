// The commands. Each returns the exit status and throws Error where it fails.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "purine/cli/requests.h"

namespace purine::cli {

/// Exit statuses.
inline constexpr int success = 0;
inline constexpr int failure = 1;        ///< something went wrong while it ran
inline constexpr int usage = 2;          ///< the command line or the job file is wrong; nothing ran
inline constexpr int interrupted = 130;  ///< by Ctrl-C or SIGTERM, after everything was saved

int train(const TrainRequest& request);
int evaluate(const EvaluateRequest& request);
int predict(const PredictRequest& request);
int graph(const GraphRequest& request);
int devices(const DevicesRequest& request);
int bench(const BenchRequest& request);
int simulate(const SimulateRequest& request);
int plan(const PlanRequest& request);
int check(const CheckRequest& request);
int data_check(const DataCheckRequest& request);
int why(const WhyRequest& request);
int report(const ReportRequest& request);
int text(const TextRequest& request);

/// What a user is told of an exception, and the exit status that goes with it.
struct Complaint {
  int status = failure;
  std::string text;
};
Complaint complaint_about(const std::exception_ptr& error);

/// Prints the text of an error as one line on standard error, after what standard output holds.
void print_error(std::string_view text);

/// Runs a command line: the whole of `purine`. Errors become one line on standard error; nothing is thrown.
int run_command(int argc, const char* const* argv);

}  // namespace purine::cli
