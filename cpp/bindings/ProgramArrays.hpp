#pragma once
#include <pybind11/numpy.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "embedded/Session.hpp"

/// The NumPy arrays that a saved program takes and returns. Used under the GIL.
class ProgramArrays {
 public:
  using Values = std::vector<pybind11::object>;
  using Arrays = std::vector<pybind11::array>;
  using Type = std::pair<pybind11::dtype, std::vector<pybind11::ssize_t>>;

  /// `convert(i, value, samples)` returns an array of input i's type, or raises; samples is None or
  /// its first dimension.
  ProgramArrays(std::vector<Type> inputs, std::vector<Type> outputs, pybind11::object convert);

  /// The number of samples along the first axis of the first value; 0 if it has no axis.
  static std::size_t samplesOf(const Values& values);

  /// Values as arrays of the inputs' types, with `samples` in place of the first dimension, unless
  /// that is -1.
  Arrays inputs(const Values& values, pybind11::ssize_t samples = -1) const;
  /// New arrays for the results.
  Arrays outputs(pybind11::ssize_t samples = -1) const;

  static ipujax::embedded::Arrays pointersTo(const Arrays& inputs, Arrays& outputs);

 private:
  std::vector<Type> inputs_;
  std::vector<Type> outputs_;
  pybind11::object convert_;
};

/// The arrays of submitted runs, kept until those are done. Used under the GIL.
class ArraysInUse {
 public:
  using Run = std::shared_ptr<ipujax::embedded::Run>;
  void keep(Run run, ProgramArrays::Arrays inputs, ProgramArrays::Arrays outputs);
  /// Releases the arrays of runs that are done, up to the first that is not.
  void release();

 private:
  struct Entry {
    Run run;
    ProgramArrays::Arrays inputs;
    ProgramArrays::Arrays outputs;
  };
  std::deque<Entry> entries_;
};
