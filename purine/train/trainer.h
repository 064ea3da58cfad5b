// Trains a job: epochs, evaluations, checkpoints, metrics and a trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <vector>

#include "purine/net/start_up.h"
#include "purine/session/runtime.h"
#include "purine/train/job_file.h"
#include "purine/train/reports.h"

namespace purine::train {

struct TrainerOptions {
  /// Go on with the run in the run folder, from its newest checkpoint; a folder without one starts anew.
  bool resume = false;
  /// If the run folder exists, the next free number goes behind its name.
  bool numbered_folder = false;
  /// Save a checkpoint and stop after this many steps of the whole run, as if interrupted; 0: never.
  std::int64_t stop_after = 0;
  /// When a stop is requested, the steps under way are finished and saved.
  std::stop_token stop = {};
  /// What was measured of the network, by rank, for traces and for what is said of the run's speed.
  std::vector<net::Link> links = {};
};

/// Trains a job in a run folder (RunPaths says what it then holds). Training and evaluation graphs, on the
/// same variables, are built and checked before the folder is made.
///
/// The runtime has the job's devices. Where it has an endpoint, all ranks make the same trainer and train the
/// parts that lie at theirs; rank 0 alone uses the run folder and has listeners. What fails at one rank ends
/// the run at all: the others throw RemoteError.
///
/// A run is exact: the same job gives the same checkpoints, to the byte,
/// with any number of workers, and whether it was interrupted and resumed or not. Checkpoints hold whole
/// tensors, however the devices divide them, so that a run goes on with another scheme or number of devices;
/// its numbers are then those of one device, up to the rounding of sums in another order.
class Trainer {
 public:
  /// What the data or the graph show to be wrong with the job is an Error with file and line of its key.
  Trainer(Runtime& runtime, const LoadedJob& job, TrainerOptions options);
  ~Trainer();

  /// Is told what happens; must outlive the run. The run folder's metrics are written beside all listeners.
  void add(Listener& listener);

  /// Runs until the end, or until it is stopped. A resumed run first makes up for the evaluation that an
  /// interrupt kept it from; one that is complete does nothing. Errors of operators, of data and of the disk
  /// end the run: the checkpoints saved before stay whole. Errors of a step say its number, counted from 1.
  EndReport run();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace purine::train
