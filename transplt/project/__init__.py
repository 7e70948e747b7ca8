"""What the files of a project say to each other: records and their sum, marks, who handles the NPU already."""
