# An entry point for the plain contract: the items come in JOB_INPUT, the exit code says whether all of them succeeded.
# One item's failure stops no other. Frames are written under a name of their own and renamed, so a run that is killed in
# the middle leaves nothing half-done behind, and a run that is repeated does no harm.
import json
import os
import pathlib
import subprocess
import sys

folder = pathlib.Path(os.environ["VIDEO_FOLDER"])


def extract(code: str) -> None:
    video = folder / "videos" / f"{code}.mp4"
    if not video.exists():
        raise RuntimeError(f"no video {code}")
    with open(folder / "journal.txt", "a") as journal:
        journal.write(f"python {code}\n")
    for kind, options in (("frames", ["-frames:v", "1"]), ("thumbnails", ["-frames:v", "1", "-vf", "scale=64:-1"])):
        part = folder / kind / f".{code}-{os.getpid()}.jpg"
        command = ["ffmpeg", "-v", "error", "-y", "-i", str(video), *options, str(part)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            part.unlink(missing_ok=True)
            raise RuntimeError(f"{code}: ffmpeg: {done.stderr.strip().splitlines()[-1]}")
        part.rename(folder / kind / f"{code}.jpg")


failed = 0
for item in json.loads(os.environ["JOB_INPUT"]):
    try:
        extract(item["code"])
        print(f"extracted {item['code']}")
    except Exception as error:
        failed += 1
        print(error, file=sys.stderr)
sys.exit(1 if failed else 0)
