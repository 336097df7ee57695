"""DomainNet, 345 kinds of thing in six styles: `domain_net`.

What it is: 586,575 images. The domains are styles: clip art (48,129 images), infographics (51,605), paintings (72,266),
quick drawings from a game (172,500, 500 of each class), photographs (172,947) and sketches (69,128).

Clean-up: the archives contain duplicates (G. Kang found them). The authors' lists, two text files per domain, name the
586,575 images that are left: with the lists in the root, only these are loaded; without them, as in a copy cleaned by
DomainBed's script, all images are. Clip art and paintings are those of `groundtruth`, from which mistakes were removed.

Splits: under `mdlt` each pair has 20 images for validation, 40 for test and the rest for training: 468,574 / 39,240 /
78,761. The paper trains for 15,000 steps with 32 images per domain. `dg` (leave one domain out) splits the images anew.
The reference published no split file for this set; counts are known per domain only, not per pair.

How to get it: 18 GB from Boston University or Hugging Face; sizes and checksums as published by TensorFlow Datasets.
"""

from functools import partial

from crosstail.data.benchmarks._load import load_images
from crosstail.data.benchmarks._sheet import Archive, DataSheet, Release

CLASSES = """
aircraft_carrier airplane alarm_clock ambulance angel animal_migration ant anvil apple arm asparagus axe backpack
banana bandage barn baseball baseball_bat basket basketball bat bathtub beach bear beard bed bee belt bench bicycle
binoculars bird birthday_cake blackberry blueberry book boomerang bottlecap bowtie bracelet brain bread bridge
broccoli broom bucket bulldozer bus bush butterfly cactus cake calculator calendar camel camera camouflage campfire
candle cannon canoe car carrot castle cat ceiling_fan cello cell_phone chair chandelier church circle clarinet clock
cloud coffee_cup compass computer cookie cooler couch cow crab crayon crocodile crown cruise_ship cup diamond
dishwasher diving_board dog dolphin donut door dragon dresser drill drums duck dumbbell ear elbow elephant envelope
eraser eye eyeglasses face fan feather fence finger fire_hydrant fireplace firetruck fish flamingo flashlight
flip_flops floor_lamp flower flying_saucer foot fork frog frying_pan garden garden_hose giraffe goatee golf_club
grapes grass guitar hamburger hammer hand harp hat headphones hedgehog helicopter helmet hexagon hockey_puck
hockey_stick horse hospital hot_air_balloon hot_dog hot_tub hourglass house house_plant hurricane ice_cream jacket
jail kangaroo key keyboard knee knife ladder lantern laptop leaf leg light_bulb lighter lighthouse lightning line
lion lipstick lobster lollipop mailbox map marker matches megaphone mermaid microphone microwave monkey moon
mosquito motorbike mountain mouse moustache mouth mug mushroom nail necklace nose ocean octagon octopus onion oven
owl paintbrush paint_can palm_tree panda pants paper_clip parachute parrot passport peanut pear peas pencil penguin
piano pickup_truck picture_frame pig pillow pineapple pizza pliers police_car pond pool popsicle postcard potato
power_outlet purse rabbit raccoon radio rain rainbow rake remote_control rhinoceros rifle river roller_coaster
rollerskates sailboat sandwich saw saxophone school_bus scissors scorpion screwdriver sea_turtle see_saw shark sheep
shoe shorts shovel sink skateboard skull skyscraper sleeping_bag smiley_face snail snake snorkel snowflake snowman
soccer_ball sock speedboat spider spoon spreadsheet square squiggle squirrel stairs star steak stereo stethoscope
stitches stop_sign stove strawberry streetlight string_bean submarine suitcase sun swan sweater swing_set sword
syringe table teapot teddy-bear telephone television tennis_racquet tent The_Eiffel_Tower The_Great_Wall_of_China
The_Mona_Lisa tiger toaster toe toilet tooth toothbrush toothpaste tornado tractor traffic_light train tree triangle
trombone truck trumpet t-shirt umbrella underwear van vase violin washing_machine watermelon waterslide whale wheel
windmill wine_bottle wine_glass wristwatch yoga zebra zigzag
"""  # in the order of the labels in the authors' lists

_BOSTON = "http://csr.bu.edu/ftp/visda/2019/multi-source/"
_COPY = "https://huggingface.co/yashkant/evalmerge/resolve/main/domainnet/"
_IMAGES = (  # file, bytes, SHA-256
    ("clipart.zip", 1_270_909_081, "f8f248a3e8bbc9868c523ae24e6601b4c2ad102afc60c0efeb4f3255df22354d"),
    ("infograph.zip", 4_338_659_804, "891e14f476317e97b6f06d6498c11d0a5b8d0c8b57210765ed9beb072da611fa"),
    ("painting.zip", 3_679_366_174, "fa47e6d405503ea0286cabd767f176bd30e988b63ddd7b9db16cf030c9770015"),
    ("quickdraw.zip", 459_920_701, "9f37df2a8c3733703dbb35ad9964202a65f675ca30137756457537536b485d84"),
    ("real.zip", 6_062_039_589, "d7fe010b430c5b510f85d657d38c4a1924822695fabea4fef57bd00dba251d63"),
    ("sketch.zip", 2_633_992_926, "23a7dbae7016b343e934399beaa8a68728fb5e570ebe2c71df9b75cf91c499fc"),
)
_LISTS = (
    ("clipart_train.txt", 1_443_819, "affdadf5f95a7583e6b98030a3d35007e2613ee4dd942393c5a705ec2b429312"),
    ("clipart_test.txt", 628_917, "62c8e36aaba1c41ad9e249099739707220a44c08f167b37ef420f34a31628a6b"),
    ("infograph_train.txt", 1_683_098, "36b44cbd41a2915e0dc73b4f4be8862a6f3c220f93c8d63fb2439beeae3aefda"),
    ("infograph_test.txt", 728_028, "413cfa54ac92e7e6b242f4f09fbd9c8ace85c4deaf3cb6c81ff6b68264460136"),
    ("painting_train.txt", 2_241_901, "f1da38d50a702fddf1329f85bc607d7a2abcae7e6aec75e1fd49cc1bd340d47b"),
    ("painting_test.txt", 971_888, "11472b13b5188e09f06918b12eebb660588c97a20e43e268d9b02e3e37eb8f97"),
    ("quickdraw_train.txt", 5_164_600, "3a5edd3bc215772010eebc87f158707703dd7e48091d13b816af81326a9d1c0f"),
    ("quickdraw_test.txt", 2_213_400, "2a00a60650a453c65c356da748fec54084a197272137c440e7d52d08947357bf"),
    ("real_train.txt", 4_440_944, "19d483256d24aef19e581b65eda8333fd918aef3eb733fe499ff384120e3a289"),
    ("real_test.txt", 1_911_327, "2b3f75bcde309aeb5931292084b2162e936b5f189e3bb1ad716f0f74c460864c"),
    ("sketch_train.txt", 1_960_222, "72f4bc6afa5702a1ccba800d0053c1427de87439dfaf246dbc9a2e71abfec54f"),
    ("sketch_test.txt", 850_581, "3fb48fca18c507c4321f007c3f62b308ec232ff6928cbfe2af64e76ec366e840"),
)


def _archive(file: str, size: int, sha256: str) -> Archive:
    domain, _, suffix = file.partition(".")
    if suffix == "zip":
        cleaned = "groundtruth/" if domain in ("clipart", "painting") else ""
        where, inside = _BOSTON + cleaned, f"{domain}/<class>/*"
    else:
        where, inside = _BOSTON + "domainnet/txt/", "used as it is: the images that are no duplicates"
    return Archive(file=file, mirrors=(where + file, _COPY + file), size=size, sha256=sha256, unpacks_to=inside)


SHEET = DataSheet(
    name="domain_net",
    title="DomainNet: 345 kinds of thing in six styles",
    summary="Clip art, infographics, paintings, quick drawings, photographs and sketches; 18 GB.",
    made_by="X. Peng, Q. Bai, X. Xia, Z. Huang, K. Saenko and B. Wang, with a web crawler and twenty annotators; quick "
    "drawings: Google's Quick, Draw!",
    domains=("clipart", "infograph", "painting", "quickdraw", "real", "sketch"),
    classes=tuple(CLASSES.split()),
    licence="the authors' fair-use notice: non-commercial research",
    citation="Peng et al. (2019), Moment Matching for Multi-Source Domain Adaptation, ICCV",
    source="Boston University (ai.bu.edu/M3SDA, cleaned version), and a copy on Hugging Face",
    batch_size=32,
    steps=15000,
    validation=20,
    protocols=("mdlt", "dg"),
    domain_counts=(48129, 51605, 72266, 172500, 172947, 69128),
    paper_totals=(468574, 39240, 78761),
    releases=(
        Release(
            (48837, 53201, 75759, 172500, 175327, 70386),
            "the archives with their duplicates, 596,010 images; put the authors' lists (clipart_train.txt, …) into "
            "the folder and the duplicates are left out",
            usable=False,
        ),
    ),
    archives=tuple(_archive(*row) for row in (*_LISTS, *_IMAGES)),
    lists=tuple(file for file, _, _ in _LISTS),
    split_file="DomainNet.csv",
    clean_up="only the images that the authors' lists name are kept, where the lists are in the root",
)

load = partial(load_images, SHEET)
