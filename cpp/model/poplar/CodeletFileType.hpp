#pragma once
#include <string>

namespace poplar {

/// Contents of a codelet file. `Auto` decides by the file's extension.
enum class CodeletFileType {
  PreprocessedAsmSource,
  AsmSource,
  CSource,
  CppSource,
  IrSource,
  Object,
  Auto
};

/// The type for a file name's extension; Auto if the extension is unknown.
CodeletFileType getCodeletFileType(const char* path);
std::string getExtensionFromFileType(CodeletFileType type);
std::string getLanguageOption(CodeletFileType type);

}  // namespace poplar
