// What was recorded of a run: which operator ran where, and when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace purine::trace {

/// What an operator waits for: its iteration t begins only after iteration t - tokens of `op` is done.
struct Dependency {
  std::uint32_t op = 0;  ///< into Trace::operators
  std::uint32_t tokens = 0;
  bool value = true;  ///< it reads what `op` made; if not, it only takes over storage

  bool operator==(const Dependency& other) const = default;
};

/// Where an output lies in the planned memory of its location. In iteration t it begins at
/// `offset + t % slots * stride`.
struct Storage {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t slots = 1;
  std::int64_t stride = 0;

  bool operator==(const Storage& other) const = default;
};

/// The half of a copy between ranks that an operator is.
struct ExchangeLabel {
  bool sends = false;
  std::int32_t peer = 0;      ///< the other rank
  std::uint32_t channel = 0;  ///< the same at both ranks, which use it for this copy alone
  std::int64_t bytes = 0;

  bool operator==(const ExchangeLabel& other) const = default;
};

/// What a trace says of an operator. All but the first four may be missing: a trace that does not come from a
/// program knows no more.
struct OperatorLabel {
  std::string path;
  std::string type;
  std::string location;      ///< `0/cpu:0`
  std::string shapes;        ///< of inputs and outputs, as text for people
  double operations = 0;     ///< floating-point operations of one execution
  double bytes = 0;          ///< that one execution reads and writes
  bool brings_data = false;  ///< from outside: it reads images
  std::optional<ExchangeLabel> exchange = {};
  std::vector<Dependency> after = {};
  std::vector<Storage> outputs = {};  ///< in memory that is planned; not variables

  bool operator==(const OperatorLabel& other) const = default;
};

/// The memory that was planned at a location.
struct PlannedMemory {
  std::string location;
  std::int64_t variables = 0;  ///< bytes of what lives across iterations
  std::int64_t arena = 0;      ///< bytes of all else

  bool operator==(const PlannedMemory& other) const = default;
};

/// How a process's clock was compared with that of rank 0. Nanoseconds.
struct ClockComparison {
  std::int64_t offset = 0;  ///< what was added to this process's times, to have them by rank 0's clock
  std::int64_t error = 0;   ///< the most by which the result can be wrong; 0 at rank 0

  bool operator==(const ClockComparison& other) const = default;
};

/// One execution of one part of an operator. Times are nanoseconds of one clock. On a queue, or between
/// ranks, `begin` is when it was handed over: it may have waited there for what was before it. A receive's
/// begin is when its memory was offered.
struct OperatorEvent {
  std::uint32_t op = 0;  ///< into Trace::operators
  std::int32_t part = 0;
  std::int32_t track = 0;  ///< into Trace::tracks
  std::int64_t iteration = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool operator==(const OperatorEvent& other) const = default;
};

/// Something else that took time: reading a file, saving a checkpoint.
struct SpanEvent {
  std::uint32_t name = 0;  ///< into Trace::names
  std::int32_t track = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool operator==(const SpanEvent& other) const = default;
};

/// The value of something at a time: bytes in use, samples waiting.
struct CounterEvent {
  std::uint32_t name = 0;  ///< into Trace::names
  std::int32_t track = 0;
  std::int64_t time = 0;
  double value = 0;

  bool operator==(const CounterEvent& other) const = default;
};

/// What a simulation of the run that a trace is of needs to know. Texts of files, so that they say all.
struct RunDescription {
  std::string job;                  ///< a job file; its devices are the cluster's
  std::string cluster;              ///< a cluster file, with a host for each rank
  std::vector<std::int64_t> image;  ///< channels, height, width
  std::int64_t classes = 0;

  bool operator==(const RunDescription& other) const = default;
};

/// The trace of one process. Events are sorted by their begin, then by track.
struct Trace {
  std::int32_t rank = 0;
  std::vector<OperatorLabel> operators;
  std::vector<std::string> tracks;  ///< names of the workers and queues that things ran on
  std::vector<std::string> names;   ///< of spans and counters
  std::vector<OperatorEvent> events;
  std::vector<SpanEvent> spans;
  std::vector<CounterEvent> counters;
  std::uint64_t dropped = 0;  ///< events that happened but found no room
  std::vector<PlannedMemory> memory = {};
  ClockComparison clock = {};
  /// What people want to know of the run, by names: `host`, `processor`, `model`.
  std::vector<std::pair<std::string, std::string>> about = {};
  std::optional<RunDescription> run = {};  ///< in one of the traces of a run

  /// Brings all events into their order.
  void sort();
  /// Moves all times; `clock.offset` says so too.
  void shift(std::int64_t nanoseconds);

  bool operator==(const Trace& other) const = default;
};

}  // namespace purine::trace
