// What ranks say to each other besides tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace purine::net {

/// A short message between endpoints. The fields beside `kind` are used as each kind says.
struct Words {
  enum class Kind : std::uint32_t {
    heartbeat,  ///< nothing but a sign of life
    credit,     ///< memory of `bytes` waits in `slot` for a message
    refusal,    ///< the message for `slot` has another size, `bytes`, and isn't sent
    end,        ///< the sender begins no iteration of the run `version` from `bytes` on
    failure,    ///< the run has failed at `rank`, for the reason `text`; `slot` says how it is known
    quiet,      ///< the sender knows of the failure, and all chunks that it had under way are sent
    beginning,  ///< the first bytes of the message for `slot` follow
    departure,  ///< the sender is done, after `bytes` messages to the receiver
  };
  Kind kind = Kind::heartbeat;
  std::uint32_t channel = 0;
  std::int64_t version = 0;
  std::int64_t bytes = 0;
  std::uint32_t slot = 0;
  std::int32_t rank = 0;
  std::string text = {};

  /// All ranks run the same program on machines of the same byte order.
  std::string encode() const;
  static Words decode(std::string_view encoded);
  /// What `encode` needs besides the text, in bytes.
  static constexpr std::size_t overhead = 32;
};

}  // namespace purine::net
