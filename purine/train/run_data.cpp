#include "purine/train/run_data.h"

#include <fmt/format.h>

#include "purine/core/amount_text.h"
#include "purine/core/shell_word.h"
#include "purine/data/class_counts.h"
#include "purine/session/agreement.h"

namespace purine::train {

RunData open_data(const Job& job, Notes& notes) {
  RunData data;
  data.training_set = open_dataset(job, data::Subset::train);
  data.test_set = open_dataset(job, data::Subset::test);
  data.skipped = std::make_shared<data::SkippedImages>([&notes](const data::SkippedImages::Entry& entry) {
    notes.add(fmt::format("left out {}: {}", entry.path, entry.reason));
  });
  data.task = find_task(job, *data.training_set);
  data.steps_per_epoch = steps_per_epoch(job, data.training_set->size());
  data.total_steps = total_steps(job, data.steps_per_epoch);
  return data;
}

void compare_data(Endpoint& endpoint, const RunData& data) {
  const auto compare = [&](const char* what, const data::Dataset& set) {
    compare_words(endpoint, fmt::format("has a {} set of identity {:016x}", what, set.fingerprint()),
                  "data.folder must hold the same files at every rank");
  };
  compare("training", *data.training_set);
  compare("test", *data.test_set);
}

std::vector<std::string> notes_at_start(const Job& job, const RunData& data, std::int64_t step) {
  std::vector<std::string> notes;
  const std::vector<std::string> doubts =
      data::doubts_about(data.training_set->class_names(), data::class_counts(*data.training_set));
  if (!doubts.empty()) {
    notes.push_back(fmt::format("are the training set's labels right? {}; `purine data check {}` tells more",
                                fmt::join(doubts, "; "), shell_word(job.data.folder)));
  }
  if (job.trace.steps > 0 && job.trace.first_step >= data.total_steps) {
    notes.push_back(fmt::format("no step will be traced: trace.first_step is {}, and the run ends after {}",
                                job.trace.first_step, counted_text(data.total_steps, "step")));
  }
  if (step >= data.total_steps) {
    // A learning rate that falls over the whole run has none left for more.
    const bool may_go_on = job.optimizer.schedule == "constant" || job.optimizer.schedule == "step";
    notes.push_back(
        fmt::format("the run is complete: all of its {} {} done before, and nothing is left to train{}",
                    counted_text(step, "step"), step == 1 ? "was" : "were",
                    may_go_on ? "; more train.epochs or train.steps go on" : ""));
  }
  return notes;
}

}  // namespace purine::train
