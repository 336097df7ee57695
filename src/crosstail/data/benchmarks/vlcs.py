"""VLCS, five kinds of object in four older photo collections: `vlcs`.

What it is: 10,729 photographs of birds, cars, chairs, dogs and people. The domains are their sources: Caltech-101 (one
centred object), LabelMe and SUN09 (whole scenes) and PASCAL VOC 2007 (Flickr). Class distributions differ widely: SUN09
has 20 birds and 1,036 chairs.

Splits: under `mdlt` each pair has 15 images for validation, 30 for test and the rest for training: 9,872 / 285 / 572.
Three pairs (SUN09 birds and dogs, LabelMe dogs) have fewer than 45 images and none for training. `dg` (leave one domain
out) splits the images anew.

How to get it: DomainBed's copy, which the paper's split file refers to: its file names are random numbers that no other
copy has. Other copies (JiGen's, with folders CALTECH/full/0, …) have the same photographs in other folders and get a
new split. The checksum is that of two public loaders; the size is not published.
"""

from functools import partial

from crosstail.data.benchmarks._load import load_images
from crosstail.data.benchmarks._sheet import Archive, DataSheet

SHEET = DataSheet(
    name="vlcs",
    title="VLCS: five kinds of object in four older photo collections",
    summary="Birds, cars, chairs, dogs and people in Caltech-101, LabelMe, SUN09 and PASCAL VOC 2007.",
    made_by="C. Fang, Y. Xu and D. N. Rockmore, from the five classes that four existing data sets share",
    domains=("Caltech101", "LabelMe", "SUN09", "VOC2007"),
    classes=("bird", "car", "chair", "dog", "person"),
    licence="none stated; each part keeps the terms of its source",
    citation="Fang, Xu & Rockmore (2013), Unbiased Metric Learning: On the Utilization of Multiple Datasets and Web "
    "Images for Softening Bias, ICCV",
    source="DomainBed's copy on Google Drive; the original page, at Dartmouth, is gone",
    validation=15,
    protocols=("mdlt", "dg"),
    counts=(
        (237, 123, 118, 67, 870),
        (80, 1209, 88, 42, 1237),
        (20, 932, 1036, 30, 1264),
        (330, 699, 428, 420, 1499),
    ),
    paper_totals=(9872, 285, 572),
    aliases={
        "Caltech101": ("CALTECH", "Caltech", "caltech101", "caltech"),
        "LabelMe": ("LABELME", "Labelme", "labelme"),
        "SUN09": ("SUN", "sun09", "sun"),
        "VOC2007": ("PASCAL", "VOC", "voc2007", "pascal"),
    },
    archives=(
        Archive(
            file="VLCS.tar.gz",
            mirrors=("https://drive.google.com/uc?id=1skwblH1_okBwxWxmRsp9_qi15hyPpxg8",),
            md5="8870171eba660927d9668f4e515928e4",
            unpacks_to="VLCS/<domain>/<class>/*.jpg, about 3.6 GB",
        ),
    ),
    split_file="VLCS.csv",
)

load = partial(load_images, SHEET)
