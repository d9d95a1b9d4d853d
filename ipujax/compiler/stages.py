"""The names of the compiler's stages, in order: as in dumps, errors and progress lines."""

STAGES = (
    "1_ingest",
    "2_partition",
    "3_normalise",
    "4_place",
    "5_fuse",
    "6_schedule",
    "7_lower",
    "8_build",
)
INGEST, PARTITION, NORMALISE, PLACE, FUSE, SCHEDULE, LOWER, BUILD = STAGES
