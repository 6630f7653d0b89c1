"""The file of a comparison: what it amounts to, and what is wrong with it."""

from __future__ import annotations

import shlex

import pytest
from toy_command import complaint

from nmtflex.cli.comparison_file import read_comparison
from nmtflex.config import AttentionConfig, CompareConfig

FILE = """\
data = "prepared"
out = "out"

[train]
decoder = "luong"
epochs = 3
window = 4

[entries.global]
attention = "global"

[entries."local, small"]
attention = "local-p"
dropout = 0.5
"""
FLEXIBLE = """
[entries.flexible]
attention = "flexible"

[entries.chosen]
from = "flexible"
[entries.chosen.finetune]
beta = 0.5
[entries.chosen.sweep]

[entries.fixed]
from = "chosen"
eval = { tau = 0.5, beam = 3 }
"""


@pytest.fixture
def dry(command_line, tmp_path):
    """Return the commands of a file, as lists of words."""

    def read(text: str, *flags: object) -> list[list[str]]:
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        outcome = command_line("compare", path, "--dry-run", *flags)
        assert (outcome.code, outcome.err) == (0, ""), outcome.err
        *commands, last = outcome.out.splitlines()
        assert last.startswith("# then, in turns, the speed of ")
        found = [shlex.split(line) for line in commands]
        assert {words[0] for words in found} == {"nmtflex"}
        return [words[1:] for words in found]

    return read


def named(commands, name):
    return [words for words in commands if words[0] == name]


def value(words, flag):
    return words[words.index(flag) + 1]


def test_common_options_and_those_of_an_entry(dry):
    first, scored, second, _ = dry(FILE)
    assert first[:4] == ["train", "prepared", "--run", "out/global-1"]
    assert shlex.join(first[4:]) == "--decoder luong --epochs 3 --attention global --seed 1"
    assert shlex.join(second[4:]) == (
        "--decoder luong --epochs 3 --window 4 --attention local-p --dropout 0.5 --seed 1"
    )
    assert shlex.join(scored) == "eval out/global-1 --significance bootstrap --ribes --json"


def test_every_seed_and_the_folders(dry):
    commands = dry(f"seeds = [2, 7]\n{FILE}", "--out", "there", "--data", "other")
    runs = [value(words, "--run") for words in named(commands, "train")]
    assert runs == [
        "there/global-2", "there/local, small-2", "there/global-7", "there/local, small-7",
    ]  # fmt: skip
    assert [value(words, "--seed") for words in named(commands, "train")] == list("2277")
    assert {words[1] for words in named(commands, "train")} == {"other"}


def test_a_training_begins_with_the_weights_of_another_entry(dry):
    """With those of the same seed, as they decode; any other name is a run."""
    weights = "\ninit-from = 'chosen'\nepochs = 1\n[entries.other]\ninit-from = 'runs/x'\n"
    text = FILE + FLEXIBLE + "[entries.warm]\nattention = 'memory'" + weights
    commands = dry(f"seeds = [3, 4]\n{text}")
    warm = [words for words in named(commands, "train") if "warm" in value(words, "--run")]
    assert [value(words, "--init-from") for words in warm] == ["out/chosen-3", "out/chosen-4"]
    assert [value(words, "--epochs") for words in warm] == ["1", "1"]
    (other, _) = (words for words in named(commands, "train") if "other" in value(words, "--run"))
    assert value(other, "--init-from") == "runs/x"


def test_entries_of_another_file_come_first(dry, tmp_path):
    """Those of the same name are replaced in their place; its other tables do not count."""
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "all.toml").write_text(FILE + FLEXIBLE, encoding="utf-8")
    own = 'data = "d"\nout = "o"\nentries-of = "shared/all.toml"\n[train]\ndecoder = "ssru"\n'
    alone = named(dry(own), "train")
    assert [value(words, "--run") for words in alone] == [
        "o/global-1", "o/local, small-1", "o/flexible-1",
    ]  # fmt: skip
    assert {value(words, "--decoder") for words in alone} == {"ssru"}
    assert not any("--epochs" in words for words in alone)
    text = own + "[entries.none]\nattention = 'none'\n[entries.'local, small']\nwindow = 3\n"
    commands = dry(text + "attention = 'local-m'\n[entries.chosen]\nfrom = 'flexible'\n")
    trained = named(commands, "train")
    assert [value(words, "--run") for words in trained] == [
        "o/global-1", "o/local, small-1", "o/flexible-1", "o/none-1",
    ]  # fmt: skip
    assert shlex.join(trained[1][4:]) == "--decoder ssru --window 3 --attention local-m --seed 1"
    assert not named(commands, "finetune")  # chosen, without one, is the run of flexible


def test_faults_of_another_file_of_entries(command_line, tmp_path):
    path, other = tmp_path / "mine.toml", tmp_path / "all.toml"
    path.write_text("data = 'd'\nentries-of = 'all.toml'\n")

    def message() -> str:
        return complaint(command_line, "compare", path, "--dry-run")

    assert message() == f"{path}: {other}: No such file or directory"
    other.write_text(path.read_text())
    assert message().startswith(f"{path}: {other} takes the entries of all.toml itself")
    other.write_text("data = 'd'\n")
    assert message().startswith(f"{path}: {other}: there are no entries")
    path.write_text("data = 'd'\nentries-of = 3\n")
    assert message() == f"{path}: entries-of must be a path, not 3"


def test_the_folder_follows_from_the_file(dry):
    (first, *_) = dry(FILE.replace('out = "out"\n', ""))
    assert value(first, "--run") == "runs/mine/global-1"


def test_runs_of_another_entry_a_finetuning_and_thresholds(dry):
    eval_table = "\n[eval]\nbeam = 7\n[finetune]\nepochs = 1\n[sweep]\ntau = '0.3,inf'\n"
    train = FILE.replace("[train]", "[train]\ndtype = 'float64'")
    commands = dry(train + FLEXIBLE + eval_table)
    assert len(named(commands, "train")) == 3
    (finetuning,), (sweeping,) = named(commands, "finetune"), named(commands, "sweep")
    assert shlex.join(finetuning) == (
        "finetune out/flexible-1 --run out/chosen-1 --dtype float64 --epochs 1 --beta 0.5 --seed 1"
    )
    assert shlex.join(sweeping) == (
        "sweep out/chosen-1 --split valid --within 0.5 --beam 7 --tau 0.3,inf "
        "--output out/chosen-1.sweep --json"
    )
    scored = {words[1]: words for words in named(commands, "eval")[:-1]}
    assert value(scored["out/chosen-1"], "--tau") == "CHOSEN"
    assert value(scored["out/flexible-1"], "--beam") == "7"
    fixed = named(commands, "eval")[-1]
    assert fixed[1] == "out/chosen-1"  # no run of its own
    assert (value(fixed, "--tau"), value(fixed, "--beam")) == ("0.5", "3")


def test_a_finetuning_of_its_own_training(dry):
    text = FILE + "[entries.global.finetune]\nupdates = 5\n"
    commands = dry(text)
    (finetuning,) = named(commands, "finetune")
    assert finetuning[1:4] == ["out/global-1", "--run", "out/global-1.finetuned"]
    assert named(commands, "eval")[0][1] == "out/global-1.finetuned"


def test_a_trial_is_short_and_lies_apart(dry):
    text = FILE.replace("epochs = 3", "epochs = 3\nwarmup = 500\nschedule = 'cosine'")
    for words in named(dry(text, "--updates", 9), "train"):
        assert value(words, "--updates") == "9"
        assert value(words, "--warmup") == "0"
        assert "--epochs" not in words
        assert value(words, "--run").startswith("out/trial-9/")


def test_a_preset_is_written_out(dry):
    text = FILE.replace("[train]", "[train]\npreset = 'small'").replace("window = 4\n", "")
    text = text.replace("'luong'", "'ssru'").replace('"luong"', '"ssru"')
    (first, *_) = dry(text.replace('"local-p"', '"local-m"'))
    assert "--preset" not in first
    assert (value(first, "--encoder"), value(first, "--decoder-ffn")) == ("transformer", "512")
    assert (value(first, "--epochs"), value(first, "--lr")) == ("3", "0.002")


def test_false_leaves_out_a_common_option(dry):
    common = "[eval]\nmax-length = 9\nter = true\n"
    text = f"{FILE}{common}[entries.global.eval]\nmax-length = false\nter = false\n"
    first, second = named(dry(text), "eval")
    assert {"--max-length", "--ter"} & {*first} == set()
    assert {"--max-length", "--ter"} <= {*second}


def test_the_speed_is_measured_as_the_scores(tmp_path):
    path = tmp_path / "mine.toml"
    text = f"{FILE}[entries.global.eval]\nbeam = 3\n[eval]\nsplit = 'valid'\nint8 = true\n"
    path.write_text(text)
    found = read_comparison(CompareConfig(file=path))
    one, other = (entry.decoding for entry in found.entries)
    assert (one.search.beam, other.search.beam) == (3, 5)
    assert one.batch.int8
    assert found.bench.split == "valid"
    path.write_text(f"{text}[bench]\nsplit = 'test'\nbeam = 1\nrepeats = 2\n")
    found = read_comparison(CompareConfig(file=path))
    assert {entry.decoding.search.beam for entry in found.entries} == {1}
    assert (found.bench.split, found.bench.repeats) == ("test", 2)


def test_scores_without_ribes(dry):
    commands = dry(FILE + "[eval]\nribes = false\n")
    assert all("ribes" not in word for words in commands for word in words)


@pytest.mark.parametrize("kind", AttentionConfig.variants())
def test_every_mechanism_can_be_an_entry(dry, kind):
    common = "data = 'd'\n[train]\ndecoder = 'luong'\n"
    ((words), _) = dry(f"{common}[entries.one]\nattention = '{kind}'\n")
    assert value(words, "--attention") == kind


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("epochs", "epoch", "unknown option 'epoch'; did you mean epochs"),
        ("epochs = 3", "epochs = 0", "--epochs must be at least 1, not 0"),
        ("epochs = 3", "run = 'x'", "[train]: 'run' is given by the comparison"),
        ("epochs = 3", "seed = 3", "[train]: 'seed' is given by the comparison"),
        ("dropout = 0.5", "dropout = false", "'dropout' must be a number, not False"),
        ("epochs = 3", "clip = false", "[train]: option 'clip' must be a number, not False"),
        ("epochs = 3", "K = 3", "[train]: 'K' has no effect on any entry"),
        ("epochs = 3", "preset = 'smal'", "[train]: preset must be one of base, small, tiny, "),
        ("dropout = 0.5", "dropout = 2", "[entries.local, small]: --dropout must be less than 1"),
        ("dropout = 0.5", "droput = 2", "unknown option 'droput'; did you mean dropout"),
        ("dropout = 0.5", "K = 2", "--K belongs to --attention abc and memory"),
        ("dropout = 0.5", "from = 'gobal'", "from = 'gobal' must name an entry above"),
        ("dropout = 0.5", "from = 'global'", "'attention' has no effect on an entry with runs of"),
        (
            'attention = "local-p"\ndropout = 0.5',
            "from = 'global'\ninit-from = 'global'",
            "'init-from' has no effect on an entry with runs of",
        ),
        ("dropout = 0.5", "eval.beams = 2", "[entries.local, small.eval]: unknown option 'beams'"),
        ("dropout = 0.5", "eval.hypothesis = 'x'", "--hypothesis x applies to scoring files"),
        ("dropout = 0.5", "eval = 3", "[entries.local, small.eval] must be a table, not 3"),
        ("[train]", "[trian]", "unknown key 'trian'; did you mean train"),
        ("[train]", "[bench]\ngrowth = true\n[train]", "[bench]: unknown option 'growth'"),
        ("[train]", "[sweep]\nbeam = 3\n[train]", "[sweep]: 'beam' has no effect on any entry"),
        ('data = "prepared"', "", "give data: a folder"),
        ('data = "prepared"', "data = 3", "data must be a path, not 3"),
        ('data = "prepared"', "data = 'd'\nseeds = [1, 1]", "different numbers, not [1, 1]"),
        ('data = "prepared"', "data = 'd'\nseeds = [-1]", "at least 0, not [-1]"),
        ('data = "prepared"', "data = 'd'\nseeds = []", "at least 0, not []"),
        ("local, small", "../small", "entry '../small': a name begins with"),
        ("local, small", "global/1", "entry 'global/1': a name begins with"),
        ("[entries.", "[entrys.", "unknown key 'entrys'; did you mean entries"),
        ("data", "data:", "not a TOML file"),
    ],
)
def test_a_fault_of_the_file_is_one_line(command_line, tmp_path, before, after, words):
    path = tmp_path / "mine.toml"
    path.write_text(FILE.replace(before, after), encoding="utf-8")
    message = complaint(command_line, "compare", path, "--dry-run")
    assert message.startswith(f"{path}: ")
    assert words in message


def test_other_faults(command_line, tmp_path):
    path = tmp_path / "mine.toml"
    message = complaint(command_line, "compare", path)
    assert message == f"{path}: No such file or directory"
    path.write_text("data = 'x'\n")
    assert "no entries" in complaint(command_line, "compare", path)
    path.write_text("data = 'x'\n[entries]\nglobal = 3\n")
    assert "[entries.global] must be a table, not 3" in complaint(command_line, "compare", path)
    both = FILE + FLEXIBLE + "[entries.chosen.eval]\ntau = 0.5\n"
    path.write_text(both)
    assert "tau = 0.5 of eval, and sweep" in complaint(command_line, "compare", path)
    path.write_text(FILE)
    message = complaint(command_line, "compare", path, "--dry-run", "--json")
    assert message == "--json has no effect with --dry-run"
    path.write_text(FILE.replace('"prepared"', f'"{tmp_path}/nowhere"'))
    assert f"{tmp_path}/nowhere" in complaint(command_line, "compare", path, code=1)


def test_decoders_that_differ_by_default_are_warned_of(command_line, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        FILE.replace('decoder = "luong"\n', "") + '[entries.slots]\nattention = "memory"\n'
    )
    outcome = command_line("compare", path, "--dry-run")
    assert "warning: the entries have different decoders" in outcome.err
    assert "global bahdanau, local, small bahdanau, slots luong" in outcome.err


def test_decoders_that_differ_on_purpose_are_not(dry):
    commands = dry(FILE.replace("dropout = 0.5", "decoder = 'bahdanau'"))
    trained = [value(words, "--decoder") for words in commands if words[0] == "train"]
    assert trained == ["luong", "bahdanau"]
