// What a run is trained and measured on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "purine/data/dataset.h"
#include "purine/data/source.h"
#include "purine/runtime/endpoint.h"
#include "purine/train/job.h"
#include "purine/train/network.h"
#include "purine/train/notes.h"

namespace purine::train {

/// The data sets of a job, what they ask of its network, and the steps that they make.
struct RunData {
  data::DatasetPtr training_set;
  data::DatasetPtr test_set;
  std::shared_ptr<data::SkippedImages> skipped;  ///< each image that is left out goes to the notes as well
  Task task;
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;  ///< of the whole run
};

/// Opens the data sets of a job. The notes must outlive them.
RunData open_data(const Job& job, Notes& notes);

/// Throws Error where the ranks have data sets of different content. A collective call.
void compare_data(Endpoint& endpoint, const RunData& data);

/// What a user should know before a run goes on after so many steps: labels that look wrong, keys that will
/// do nothing, nothing left to train.
std::vector<std::string> notes_at_start(const Job& job, const RunData& data, std::int64_t step);

}  // namespace purine::train
