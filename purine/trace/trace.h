// What was recorded of a run: which operator ran where, and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace purine::trace {

/// What a trace says of an operator.
struct OperatorLabel {
  std::string path;
  std::string type;
  std::string location;  ///< `0/cpu:0`
  std::string shapes;    ///< of inputs and outputs, as text for people

  bool operator==(const OperatorLabel& other) const = default;
};

/// One execution of one part of an operator. Times are nanoseconds of one clock.
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

  /// Brings all events into their order.
  void sort();

  bool operator==(const Trace& other) const = default;
};

}  // namespace purine::trace
