"""Office-Home, 65 everyday objects in four styles: `office_home`.

What it is: 15,588 images of things found in offices and homes. The domains are styles: art (2,427 images), clip art
(4,365), product pictures without background (4,439) and photographs (4,357, in the folder `Real World`).

Splits: under `mdlt` each pair has 5 images for validation, 10 for test and the rest for training: 11,688 / 1,300 /
2,600. Two pairs (drills and rulers in art) have just 15 images and none for training. As no pair has more than 84 for
training, many-shot means more than 60 here. `dg` (leave one domain out) splits the images anew.

How to get it: the authors' file OfficeHomeDataset_10072016.zip on Google Drive, in three identical copies; several
public loaders have its checksum, its size is not published. Smaller copies with resized images have the same counts.
"""

from functools import partial

from crosstail.data.benchmarks._load import load_images
from crosstail.data.benchmarks._sheet import Archive, DataSheet

CLASSES = """
Alarm_Clock Backpack Batteries Bed Bike Bottle Bucket Calculator Calendar Candles Chair Clipboards Computer Couch
Curtains Desk_Lamp Drill Eraser Exit_Sign Fan File_Cabinet Flipflops Flowers Folder Fork Glasses Hammer Helmet
Kettle Keyboard Knives Lamp_Shade Laptop Marker Monitor Mop Mouse Mug Notebook Oven Pan Paper_Clip Pen Pencil
Postit_Notes Printer Push_Pin Radio Refrigerator Ruler Scissors Screwdriver Shelf Sink Sneakers Soda Speaker Spoon
TV Table Telephone ToothBrush Toys Trash_Can Webcam
"""

# fmt: off
COUNTS = (
    (74, 41, 27, 40, 75, 99, 40, 33, 20, 76, 69, 25, 44, 40, 40, 23, 15, 18, 21, 45, 22, 46, 90, 20, 46,
     40, 40, 79, 46, 18, 72, 49, 51, 20, 42, 32, 18, 49, 21, 20, 19, 19, 20, 26, 19, 18, 24, 47, 49, 15,
     20, 30, 42, 41, 46, 40, 20, 46, 40, 16, 44, 43, 20, 21, 16),
    (60, 56, 64, 98, 99, 99, 73, 46, 78, 99, 99, 40, 99, 64, 42, 41, 48, 40, 41, 50, 40, 40, 99, 99, 61,
     52, 99, 69, 40, 99, 53, 40, 99, 71, 99, 40, 76, 99, 83, 40, 51, 40, 99, 99, 41, 87, 40, 46, 40, 67,
     99, 75, 42, 42, 43, 61, 90, 60, 99, 80, 99, 39, 99, 53, 40),
    (79, 99, 62, 43, 44, 62, 47, 81, 81, 56, 99, 65, 96, 88, 75, 83, 67, 41, 67, 58, 71, 99, 91, 90, 41,
     67, 57, 90, 72, 99, 41, 54, 99, 56, 98, 72, 96, 41, 93, 68, 70, 47, 60, 40, 38, 99, 43, 43, 59, 58,
     99, 40, 49, 46, 99, 43, 99, 47, 76, 60, 58, 42, 45, 93, 98),
    (86, 99, 64, 83, 99, 78, 80, 73, 68, 99, 96, 65, 64, 76, 73, 62, 51, 43, 81, 60, 58, 85, 75, 57, 36,
     60, 52, 60, 72, 75, 83, 78, 67, 23, 71, 46, 60, 58, 68, 64, 30, 68, 65, 59, 67, 52, 53, 66, 75, 41,
     77, 51, 66, 77, 88, 63, 81, 54, 53, 59, 82, 85, 67, 81, 49),
)
# fmt: on

SHEET = DataSheet(
    name="office_home",
    title="Office-Home: 65 everyday objects in four styles",
    summary="Everyday objects as art, clip art, product pictures and photographs.",
    made_by="H. Venkateswara, J. Eusebio, S. Chakraborty and S. Panchanathan, with a web crawler",
    domains=("Art", "Clipart", "Product", "Real World"),
    classes=tuple(CLASSES.split()),
    licence="the authors' fair-use notice: non-commercial research and education",
    citation="Venkateswara, Eusebio, Chakraborty & Panchanathan (2017), Deep Hashing Network for Unsupervised Domain "
    "Adaptation, CVPR",
    source="the authors' file on Google Drive, linked from hemanthdv.org; also flwrlabs/office-home on Hugging Face",
    many=60,
    validation=5,
    protocols=("mdlt", "dg"),
    counts=COUNTS,
    paper_totals=(11688, 1300, 2600),
    aliases={
        "Art": ("art",),
        "Clipart": ("clipart",),
        "Product": ("product",),
        "Real World": ("Real", "RealWorld", "Real_World", "real_world", "real"),
    },
    archives=(
        Archive(
            file="OfficeHomeDataset_10072016.zip",
            mirrors=(
                "https://drive.google.com/uc?id=1uY0pj7oFsjMxRwaD3Sxy0jgel0fsYXLC",
                "https://drive.google.com/uc?id=1o2ieb-WCn-d4UBpJ_Fg5n1uIil60nJz2",
                "https://drive.google.com/uc?id=0B81rNlvomiwed0V1YUxQdC1uOTg&resourcekey=0-2SNWq0CDAuWOBRRBL7ZZsw",
            ),
            md5="b1c14819770c4448fd5b6d931031c91c",
            unpacks_to="OfficeHomeDataset_10072016/<domain>/<class>/*.jpg",
        ),
    ),
    split_file="OfficeHome.csv",
)

load = partial(load_images, SHEET)
