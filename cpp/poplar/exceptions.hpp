#pragma once
#include "engine/Errors.hpp"

namespace poplar {

using ipujax::engine::application_runtime_error;
using ipujax::engine::file_load_error;
using ipujax::engine::graph_connection_error;
using ipujax::engine::graph_memory_allocation_error;
using ipujax::engine::graph_program_compilation_error;
using ipujax::engine::graph_recursion_error;
using ipujax::engine::index_error;
using ipujax::engine::invalid_option;
using ipujax::engine::invalid_tile_mapping;
using ipujax::engine::link_error;
using ipujax::engine::no_environment;
using ipujax::engine::poplar_error;
using ipujax::engine::runtime_error;
using ipujax::engine::stream_connection_error;
using ipujax::engine::tensor_creation_error;
using ipujax::engine::tensor_io_state_error;
using ipujax::engine::type_error;
using ipujax::engine::unknown_vertex_type;

}  // namespace poplar
