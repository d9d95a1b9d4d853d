#pragma once
#include <stdexcept>

namespace ipujax::runtime {

/// A feed and a program could not exchange a batch; the message says why.
struct FeedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Ctrl-C was pressed while a program waited for a feed.
struct FeedInterrupted : FeedError {
  using FeedError::FeedError;
};

}  // namespace ipujax::runtime
