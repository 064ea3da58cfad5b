#include "purine/train/run_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "purine/core/json_helpers.h"
#include "purine/io/checkpoint.h"
#include "purine/session/agreement.h"
#include "purine/session/rank_values.h"
#include "purine/train/state.h"
#include "purine/train/step_error.h"

namespace purine::train {
namespace {

// What rank 0 says to all.
std::string say_to_all(Runtime& runtime, const std::string& words) {
  Endpoint* endpoint = runtime.endpoint();
  return endpoint != nullptr ? endpoint->all_gather(words).front() : words;
}

bool is_finite(const io::HostTensor& tensor) {
  return with_dtype(tensor.info.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      const std::span<const T> values = tensor.values<T>();
      return std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); });
    }
    return true;
  });
}

// Loss and gradients of a step can be finite, and what the update makes of them not. The next step would
// tell, but the newest checkpoint would hold it.
void check_finite(std::span<const io::HostTensor> tensors, std::int64_t step) {
  const auto found = std::find_if_not(tensors.begin(), tensors.end(), is_finite);
  if (found == tensors.end()) return;
  throw divergence(step, fmt::format("{} is not finite after the update, so it was not saved", found->name));
}

}  // namespace

RunStore::RunStore(Runtime& runtime, const LoadedJob& loaded, Subject subject, Folder folder)
    : runtime_(runtime), loaded_(loaded), subject_(std::move(subject)) {
  paths_.folder = loaded.job.train.run_folder;
  at_all_ranks(runtime.endpoint(), [&] {
    if (runtime.rank() != 0) return;
    switch (folder) {
      case Folder::make:
        folder_.emplace(RunFolder::create(paths_.folder));
        break;
      case Folder::make_numbered:
        folder_.emplace(RunFolder::create_numbered(paths_.folder));
        break;
      case Folder::open:
        folder_.emplace(RunFolder::open(paths_.folder));
        break;
    }
    paths_ = folder_->paths();
  });
}

// At rank 0: what the newest checkpoint says, and its tensors.
RunState RunStore::read(std::vector<io::HostTensor>& tensors) {
  io::LatestCheckpoint latest = io::load_latest_checkpoint(paths_.checkpoints());
  const io::Manifest& manifest = latest.checkpoint.manifest;
  check_resumable(manifest, latest.path, loaded_, subject_.data_fingerprint, subject_.graph);
  tensors = std::move(latest.checkpoint.tensors);
  checkpoint_ = latest.path;
  return {manifest.iteration, epoch_sums_of(manifest, latest.path), evaluation_of(manifest, latest.path)};
}

std::optional<RunState> RunStore::load(Variables& values) {
  using Json = nlohmann::json;
  std::optional<RunState> state;
  std::vector<io::HostTensor> tensors;
  at_all_ranks(runtime_.endpoint(), [&] {
    if (runtime_.rank() != 0 || io::list_checkpoints(paths_.checkpoints()).empty()) return;
    state = read(tensors);
  });
  const Json own = state ? Json{{"step", state->step}, {"evaluated", state->is_evaluated()}} : Json();
  const Json said = parse_json(say_to_all(runtime_, own.dump()));
  if (said.is_null()) return std::nullopt;
  if (!state) {
    state.emplace(RunState{.step = said["step"]});
    if (said["evaluated"]) state->evaluation.emplace(EvaluationReport{.step = state->step});
  }
  try {
    set_values(runtime_, subject_.variables, values, tensors, false);
  } catch (const RemoteError&) {
    throw;
  } catch (const Error& error) {
    throw error.at(checkpoint_.string());
  }
  saved_step_ = state->step;
  saved_evaluation_ = state->is_evaluated();
  return state;
}

bool RunStore::save(const RunState& state, const Variables& values) {
  if (saved_step_ == state.step && saved_evaluation_ == state.is_evaluated()) return false;
  io::Checkpoint checkpoint;
  checkpoint.tensors = gather_whole_values(runtime_, subject_.variables, values);
  saved_step_ = state.step;
  saved_evaluation_ = state.is_evaluated();
  if (runtime_.rank() != 0) return true;
  check_finite(checkpoint.tensors, state.step);
  const Job& job = loaded_.job;
  const bool epoch_is_over = state.step % subject_.steps_per_epoch == 0;
  const EpochSums sums = epoch_is_over ? EpochSums{} : state.sums;
  checkpoint.manifest = make_manifest(job, subject_.task, sums, subject_.data_fingerprint, subject_.graph);
  checkpoint.manifest.iteration = state.step;
  checkpoint.manifest.epoch = state.step / subject_.steps_per_epoch;
  checkpoint.manifest.position = sums.samples;
  if (state.is_evaluated()) set_evaluation(checkpoint.manifest, *state.evaluation);
  checkpoint_ =
      io::save_checkpoint(paths_.checkpoints(), checkpoint,
                          {.last = static_cast<int>(job.checkpoint.keep), .best = job.checkpoint.keep_best});
  return true;
}

}  // namespace purine::train
