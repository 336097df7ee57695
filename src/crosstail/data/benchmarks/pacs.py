"""PACS, seven kinds of object in four styles: `pacs`.

What it is: 9,991 images of 227 × 227 pixels of dogs, elephants, giraffes, guitars, horses, houses and people. The
domains are styles: art paintings (2,048 images), cartoons (2,344), photographs (1,670) and sketches (3,929, as PNG).

Splits: under `mdlt` each pair has 25 images for validation, 50 for test and the rest for training: 7,891 / 700 / 1,400.
The smallest pair, houses in sketches, has 80 images and keeps 5. `dg` (leave one domain out) splits the images anew.

How to get it: DomainBed's copy, the folder `kfold` of the authors' release; the authors' page is gone. The checksum is
that of one public loader, not confirmed by a second; the size is not published. Other copies (Hugging Face
`flwrlabs/pacs`, the GitHub repository MachineLearning2020/Homework3-PACS) have the same images and only need the
folders below.
"""

from functools import partial

from crosstail.data.benchmarks._load import load_images
from crosstail.data.benchmarks._sheet import Archive, DataSheet

SHEET = DataSheet(
    name="pacs",
    title="PACS: seven kinds of object in four styles",
    summary="Dogs, elephants, giraffes, guitars, horses, houses and people, painted, drawn and photographed.",
    made_by="D. Li, Y. Yang, Y.-Z. Song and T. M. Hospedales, from Caltech-256, Sketchy, TU-Berlin and Google Images",
    domains=("art_painting", "cartoon", "photo", "sketch"),
    classes=("dog", "elephant", "giraffe", "guitar", "horse", "house", "person"),
    licence="none stated by the authors; research use",
    citation="Li, Yang, Song & Hospedales (2017), Deeper, Broader and Artier Domain Generalization, ICCV",
    source="DomainBed's copy on Google Drive; also flwrlabs/pacs on Hugging Face",
    validation=25,
    protocols=("mdlt", "dg"),
    counts=(
        (379, 255, 285, 184, 201, 295, 449),
        (389, 457, 346, 135, 324, 288, 405),
        (189, 202, 182, 186, 199, 280, 432),
        (772, 740, 753, 608, 816, 80, 160),
    ),
    paper_totals=(7891, 700, 1400),
    aliases={
        "art_painting": ("Art", "art", "Art_painting", "ArtPainting"),
        "cartoon": ("Cartoon",),
        "photo": ("Photo",),
        "sketch": ("Sketch",),
    },
    archives=(
        Archive(
            file="PACS.zip",
            mirrors=("https://drive.google.com/uc?id=1JFr8f805nMUelQWWmfnJR3y4_SYoN5Pd",),
            md5="fd5db817f7cdafeef3bfd525aaf9b42e",
            unpacks_to="kfold/<domain>/<class>/*.jpg (sketches: *.png)",
        ),
    ),
    split_file="PACS.csv",
)

load = partial(load_images, SHEET)
