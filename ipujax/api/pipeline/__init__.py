"""Programs over several IPUs: blocks, stages, pipelines, strategies and plans."""
