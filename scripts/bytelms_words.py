"""Word lists of the `bytelms` texts and tasks: common English words, and how invented names are built."""

NOUNS = {
    "dog": "dogs", "cat": "cats", "bird": "birds", "teacher": "teachers", "farmer": "farmers", "child": "children",
    "baker": "bakers", "driver": "drivers", "wolf": "wolves", "horse": "horses", "mouse": "mice", "robot": "robots",
}  # fmt: skip
PLACES = {
    "tree": "trees", "house": "houses", "river": "rivers", "table": "tables", "car": "cars", "garden": "gardens",
    "bridge": "bridges", "tower": "towers", "shop": "shops", "boat": "boats", "hill": "hills", "school": "schools",
}  # fmt: skip
VERBS = {
    "runs": "run", "sleeps": "sleep", "sings": "sing", "waits": "wait", "eats": "eat", "falls": "fall",
    "works": "work", "talks": "talk", "swims": "swim", "reads": "read",
}  # fmt: skip
HIS = ("king", "man", "father", "uncle", "boy", "monk")
HER = ("queen", "woman", "mother", "aunt", "girl", "nun")
THINGS = ("hat", "key", "bag", "book", "coat", "ring", "shoe", "cup")
ADJECTIVES = ("old", "young", "small", "big", "happy", "quiet", "clever", "tall", "brown", "famous")
PREPOSITIONS = ("near", "behind", "beside", "by")
ADVERBS = ("today", "again", "at night", "every day")

PLURALS = {
    "s": "table chair lamp stone cloud river window pencil basket button candle carpet engine finger flower "
    "guitar hammer island jacket kettle ladder magnet needle orange pillow rocket saddle ticket tunnel violin "
    "wallet anchor blanket bucket camera desert eagle forest helmet insect jungle kitten lemon mirror napkin",
    "es": "box bus fox dish brush glass class match watch bench church branch wish tax boss kiss lunch dress "
    "peach torch witch crash flash switch sandwich compass",
    "ies": "city baby lady party story berry puppy fairy cherry copy army duty enemy family hobby jelly penny "
    "pony lily body library country",
    "ves": "leaf knife wife half shelf loaf thief calf scarf elf",
    "s after a vowel": "boy toy key day monkey turkey donkey valley tray play kidney journey chimney",
}
CATEGORIES = {
    "bird": "robin eagle sparrow owl crow swan heron parrot",
    "fish": "salmon trout shark tuna cod herring carp eel",
    "fruit": "apple pear plum cherry grape mango lemon banana",
    "tree": "oak pine birch maple willow cedar elm beech",
    "tool": "hammer saw drill wrench chisel shovel rake file",
    "metal": "iron copper gold silver tin zinc lead nickel",
    "drink": "water milk coffee tea juice wine beer cider",
    "insect": "ant bee wasp beetle moth fly mosquito cricket",
}
SPELLING = (
    "able about above across action active advice after again agree air alarm album alive allow alone angle animal "
    "answer apart april area argue arrive aside august autumn award basic battle beach became behind believe below "
    "beside better beyond blood board bottom brain brave bread break bridge bright bring broken brother budget build "
    "burden camera camp capital carbon career castle center chance change charge cheese circle clean clever climb "
    "close cloth coast coffee common corner cotton cousin crown danger daughter decade degree demand desert design "
    "dinner doctor double dragon dream early earth effort eight electric empty engine enough entire escape evening "
    "event exact example expert family famous father february figure final finger finish flight floor flower follow "
    "forest forget fortune forward fourth freedom friday friend frozen future garden gather general gentle giant "
    "glass golden grain grand grass growth guard guess habit half hammer handle happen harbor heart heavy height "
    "hidden history holiday honest honey horse hotel hundred hunger image income indeed inside island itself january "
    "journey judge july june jungle kitchen knight ladder language large laugh leader leaf leather letter level "
    "light limit listen little lonely machine magic manner march marriage master matter meadow measure medicine "
    "meeting member memory middle million minute mirror modern moment monday money month morning mother motion "
    "mountain music narrow nation nature needle neither night noble normal north notice number object ocean october "
    "office orange order other palace paper parent party pattern people perfect period picture planet plenty pocket "
    "police power prince prison private problem promise purple quarter question quick quiet rabbit radio railway "
    "reason record region remain remember repeat report rescue result return river rough royal saddle salad sample "
    "saturday school science season second secret september seven shadow shape sharp shelter silence silver simple "
    "sister sleep smooth snow soldier solid sound south special spirit spring square station steel stone storm "
    "story strange stream street strong student sudden sugar summer sunday surface system talent teacher temple "
    "thirty thousand thunder thursday ticket together tomorrow tongue total towards travel treasure trouble truth "
    "tuesday twelve twenty uncle under unknown useful valley value vessel victory village voice volume wagon walnut "
    "water weather wednesday welcome western whisper white window winter wisdom without woman wonder wooden worker "
    "world worry yellow yesterday young"
)

NAME_STARTS = "Bar Cor Dal Fen Gar Hol Jor Kel Lor Mar Nor Pel Ros Sel Tor Val"
NAME_ENDS = "a eth ick ina mund ona ric sen tan vin wyn yra bert dra gil lo"
TOWNS = ("Amberly", "Brinton", "Calder", "Dunmore", "Farley", "Gilford", "Kestrel", "Norwood")
JOBS = ("carpenter", "judge", "miner", "dancer", "florist", "hunter", "potter", "surgeon")
FOODS = ("rice", "soup", "figs", "honey", "beans", "pasta", "eggs", "corn")
