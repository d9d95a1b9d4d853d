#pragma once
#include <stdexcept>

namespace ipujax::runtime {

/// A feed has no batch for a program, or a program none for a feed; the message says why.
struct FeedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Ctrl-C came while a program waited for a feed.
struct FeedInterrupted : FeedError {
  using FeedError::FeedError;
};

}  // namespace ipujax::runtime
