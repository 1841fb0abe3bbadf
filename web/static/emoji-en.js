// The name of each emoji and words to search by, from emojibase-data 17.0.0 (MIT,
// web/vendor/emojibase-data.LICENSE), made by web/vendor/emoji.mjs.
export default `grinning face|cheerful|cheery
grinning face with big eyes|awesome|happy
grinning face with smiling eyes|happy|laugh
beaming face with smiling eyes|grinning
grinning squinting face|closed|eyes
grinning face with sweat|cold|dejected
rolling on the floor laughing|crying|face
face with tears of joy|crying|feels
slightly smiling face|happy|smile
upside-down face|hehe|smile
melting face|disappear|dissolve
winking face|flirt|heartbreaker
smiling face with smiling eyes|blush|glad
smiling face with halo|angelic
smiling face with hearts|3|adore
smiling face with heart-eyes|143|bae
star-struck|excited|eyes
face blowing a kiss|adorbs|bae
kissing face|143|date
smiling face|happy|outlined
kissing face with closed eyes|143|bae
kissing face with smiling eyes|143|closed
smiling face with tear|glad|grateful
face savoring food|delicious|eat
face with tongue|awesome|cool
winking face with tongue|crazy|epic
zany face|crazy|eye
squinting face with tongue|closed|eye
money-mouth face|paid
smiling face with open hands|hugging
face with hand over mouth|giggle|giggling
face with open eyes and hand over mouth|amazement|awe
face with peeking eye|captivated|embarrass
shushing face|quiet|shh
thinking face|chin|consider
saluting face|good|luck
zipper-mouth face|keep|quiet
face with raised eyebrow|disapproval|disbelief
neutral face|awkward|blank
expressionless face|awkward|dead
face without mouth|awkward|blank
dotted line face|depressed|disappear
face in clouds|absentminded|fog
smirking face|boss|dapper
unamused face|...|bored
face with rolling eyes|eyeroll|shade
grimacing face|awkward
face exhaling|blowing
lying face|liar|lie
shaking face|crazy|daze
relieved face|calm|peace
pensive face|awful|bored
sleepy face|crying|good
drooling face
sleeping face|bedtime
face with medical mask|cold|dentist
face with thermometer|ill|sick
face with head-bandage|hurt|injury
nauseated face|gross|nasty
face vomiting|barf|ew
sneezing face|fever|flu
hot face|dying|feverish
cold face|blue-faced
woozy face|dizzy|drunk
face with crossed-out eyes|dead|dizzy
face with spiral eyes|confused|dizzy
exploding head|blown|explode
cowboy hat face|cowgirl
partying face|bday|birthday
disguised face|eyebrow|glasses
smiling face with sunglasses|awesome|beach
nerd face|brainy|clever
face with monocle|classy|fancy
confused face|befuddled|confusing
face with diagonal mouth|confused|confusion
worried face|anxious|butterflies
slightly frowning face|sad
frowning face|sad
face with open mouth|believe|forgot
hushed face|epic|omg
astonished face|cost|no
flushed face|amazed|awkward
pleading face|begging|big
face holding back tears|admiration|aww
frowning face with open mouth|caught|guard
anguished face|forgot|scared
fearful face|afraid|anxious
anxious face with sweat|blue|cold
sad but relieved face|anxious|call
crying face|awful|feels
loudly crying face|bawling|sad
face screaming in fear|epic|fearful
confounded face|annoyed|confused
persevering face|concentrate|concentration
disappointed face|awful|blame
downcast face with sweat|close|cold
weary face|crying|fail
tired face|cost|feels
yawning face|bedtime|bored
face with steam from nose|anger|angry
enraged face|anger|angry
angry face|anger|blame
face with symbols on mouth|censor|cursing
smiling face with horns|demon|devil
angry face with horns|demon|devil
skull|body|dead
skull and crossbones|dead|death
pile of poo|bs|comic
clown face
ogre|creature|devil
goblin|angry|creature
ghost|boo|creature
alien|creature|extraterrestrial
alien monster|creature|extraterrestrial
robot|face|monster
grinning cat|animal|face
grinning cat with smiling eyes|animal|face
cat with tears of joy|animal|face
smiling cat with heart-eyes|animal|face
cat with wry smile|animal|face
kissing cat|animal|closed
weary cat|animal|face
crying cat|animal|face
pouting cat|animal|face
see-no-evil monkey|embarrassed|face
hear-no-evil monkey|animal|ears
speak-no-evil monkey|animal|face
love letter|heart|mail
heart with arrow|143|adorbs
heart with ribbon|143|anniversary
sparkling heart|143|emotion
growing heart|143|emotion
beating heart|143|cardio
revolving hearts|143|adorbs
two hearts|143|anniversary
heart decoration|143|emotion
heart exclamation|heavy|mark
broken heart|break|crushed
heart on fire|burn|love
mending heart|healthier|improving
red heart|emotion|love
pink heart|143|adorable
orange heart|143
yellow heart|143|cardiac
green heart|143|emotion
blue heart|143|emotion
light blue heart|143|cute
purple heart|143|bestest
brown heart|143
black heart|evil|wicked
grey heart|143|emotion
white heart|143
kiss mark|dating|emotion
hundred points|100|a+
anger symbol|angry|comic
collision|bomb|boom
dizzy|comic|shining
sweat droplets|comic|drip
dashing away|cloud|comic
hole
speech balloon|bubble|comic
eye in speech bubble|balloon|witness
left speech bubble|balloon|dialog
right anger bubble|angry|balloon
thought balloon|bubble|cartoon
ZZZ|comic|good
waving hand|bye|cya
raised back of hand|backhand
hand with fingers splayed|raised|stop
raised hand|5|five
vulcan salute|finger|hand
rightwards hand|handshake|hold
leftwards hand|handshake|hold
palm down hand|dismiss|drop
palm up hand|beckon|catch
leftwards pushing hand|block|five
rightwards pushing hand|block|five
OK hand|awesome|bet
pinched fingers|gesture|hand
pinching hand|amount|bit
victory hand|peace
crossed fingers|hand|luck
hand with index finger and thumb crossed|<3|expensive
love-you gesture|fingers|hand
sign of the horns|finger|hand
call me hand|hang|loose
backhand index pointing left|finger
backhand index pointing right|finger
backhand index pointing up|finger
middle finger|hand
backhand index pointing down|finger
index pointing up|finger|hand
index pointing at the viewer|finger|hand
thumbs up|+1|good
thumbs down|-1|bad
raised fist|clenched|hand
oncoming fist|absolutely|agree
left-facing fist|leftwards
right-facing fist|rightwards
clapping hands|applause|approval
raising hands|celebration|gesture
heart hands|<3|love
open hands|hug|jazz
palms up together|cupped|dua
handshake|agreement|deal
folded hands|appreciate|ask
writing hand|write
nail polish|bored|care
selfie|camera|phone
flexed biceps|arm|beast
mechanical arm|accessibility|prosthetic
mechanical leg|accessibility|prosthetic
leg|bent|foot
foot|ankle|feet
ear|body|ears
ear with hearing aid|accessibility|hard
nose|body|noses
brain|intelligent|smart
anatomical heart|beat|cardiology
lungs|breathe
tooth|dentist|pearly
bone|bones|dog
eyes|body|face
eye|1|body
tongue|body|lick
mouth|beauty|body
biting lip|anxious|bite
baby|babies|children
child|bright-eyed|grandchild
boy|bright-eyed|child
girl|bright-eyed|child
person|adult
person: blond hair|blond-haired|human
man|adult|bro
person: beard|bearded|whiskers
man: beard|bearded|whiskers
woman: beard|bearded|whiskers
man: red hair|adult|bro
man: curly hair|adult|bro
man: white hair|adult|bro
man: bald|adult|bro
woman|adult|lady
woman: red hair|adult|lady
person: red hair|adult
woman: curly hair|adult|lady
person: curly hair|adult
woman: white hair|adult|lady
person: white hair|adult
woman: bald|adult|lady
person: bald|adult
woman: blond hair|blond-haired|blonde
man: blond hair|blond-haired
older person|adult|elderly
old man|adult|bald
old woman|adult|elderly
person frowning|annoyed|disappointed
man frowning|annoyed|disappointed
woman frowning|annoyed|disappointed
person pouting|disappointed|downtrodden
man pouting|disappointed|downtrodden
woman pouting|disappointed|downtrodden
person gesturing NO|forbidden|gesture
man gesturing NO|forbidden|gesture
woman gesturing NO|forbidden|gesture
person gesturing OK|exercise|gesture
man gesturing OK|exercise|gesture
woman gesturing OK|exercise|gesture
person tipping hand|fetch|flick
man tipping hand|fetch|flick
woman tipping hand|fetch|flick
person raising hand|gesture|here
man raising hand|gesture|here
woman raising hand|gesture|here
deaf person|accessibility|ear
deaf man|accessibility|ear
deaf woman|accessibility|ear
person bowing|apology|ask
man bowing|apology|ask
woman bowing|apology|ask
person facepalming|again|bewilder
man facepalming|again|bewilder
woman facepalming|again|bewilder
person shrugging|doubt|dunno
man shrugging|doubt|dunno
woman shrugging|doubt|dunno
health worker|doctor|healthcare
man health worker|doctor|healthcare
woman health worker|doctor|healthcare
student|graduate
man student|graduate
woman student|graduate
teacher|instructor|lecturer
man teacher|instructor|lecturer
woman teacher|instructor|lecturer
judge|justice|law
man judge|justice|law
woman judge|justice|law
farmer|gardener|rancher
man farmer|gardener|rancher
woman farmer|gardener|rancher
cook|chef
man cook|chef
woman cook|chef
mechanic|electrician|plumber
man mechanic|electrician|plumber
woman mechanic|electrician|plumber
factory worker|assembly|industrial
man factory worker|assembly|industrial
woman factory worker|assembly|industrial
office worker|architect|business
man office worker|architect|business
woman office worker|architect|business
scientist|biologist|chemist
man scientist|biologist|chemist
woman scientist|biologist|chemist
technologist|coder|computer
man technologist|coder|computer
woman technologist|coder|computer
singer|actor|entertainer
man singer|actor|entertainer
woman singer|actor|entertainer
artist|palette
man artist|palette
woman artist|palette
pilot|plane
man pilot|plane
woman pilot|plane
astronaut|rocket|space
man astronaut|rocket|space
woman astronaut|rocket|space
firefighter|firetruck
man firefighter|firetruck
woman firefighter|firetruck
police officer|apprehend|arrest
man police officer|apprehend|arrest
woman police officer|apprehend|arrest
detective|sleuth|spy
man detective|sleuth|spy
woman detective|sleuth|spy
guard|buckingham|helmet
man guard|buckingham|helmet
woman guard|buckingham|helmet
ninja|assassin|fight
construction worker|build|fix
man construction worker|build|fix
woman construction worker|build|fix
person with crown|monarch|noble
prince|crown|fairy
princess|crown|fairy
person wearing turban
man wearing turban
woman wearing turban
person with skullcap|chinese|gua
woman with headscarf|bandana|hijab
person in tuxedo|formal|wedding
man in tuxedo|formal|groom
woman in tuxedo|formal|wedding
person with veil|wedding
man with veil|wedding
woman with veil|bride|wedding
pregnant woman
pregnant man|belly|bloated
pregnant person|belly|bloated
breast-feeding|baby|mom
woman feeding baby|mom|mother
man feeding baby|dad|father
person feeding baby|nanny|newborn
baby angel|church|face
Santa Claus|celebration|christmas
Mrs. Claus|celebration|christmas
Mx Claus|celebration|christmas
superhero|good|superpower
man superhero|good|superpower
woman superhero|good|heroine
supervillain|bad|criminal
man supervillain|bad|criminal
woman supervillain|bad|criminal
mage|fantasy|magic
man mage|fantasy|magic
woman mage|fantasy|magic
fairy|fairytale|fantasy
man fairy|fairytale|fantasy
woman fairy|fairytale|fantasy
vampire|blood|dracula
man vampire|blood|fangs
woman vampire|blood|fangs
merperson|creature|fairytale
merman|creature|fairytale
mermaid|creature|fairytale
elf|elves|enchantment
man elf|elves|enchantment
woman elf|elves|enchantment
genie|djinn|fantasy
man genie|djinn|fantasy
woman genie|djinn|fantasy
zombie|apocalypse|dead
man zombie|apocalypse|dead
woman zombie|apocalypse|dead
troll|fairy|fantasy
person getting massage|face|headache
man getting massage|face|headache
woman getting massage|face|headache
person getting haircut|barber|beauty
man getting haircut|barber|beauty
woman getting haircut|barber|beauty
person walking|amble|gait
man walking|amble|gait
woman walking|amble|gait
person standing
man standing
woman standing
person kneeling|knees
man kneeling|knees
woman kneeling|knees
person with white cane|accessibility|blind
man with white cane|accessibility|blind
woman with white cane|accessibility|blind
person in motorized wheelchair|accessibility
man in motorized wheelchair|accessibility
woman in motorized wheelchair|accessibility
person in manual wheelchair|accessibility
man in manual wheelchair|accessibility
woman in manual wheelchair|accessibility
person running|fast|hurry
man running|fast|hurry
woman running|fast|hurry
woman dancing|dancer
man dancing|dancer
person in suit levitating|business
people with bunny ears|bestie|bff
men with bunny ears|bestie|bff
women with bunny ears|bestie|bff
person in steamy room|day|luxurious
man in steamy room|day|luxurious
woman in steamy room|day|luxurious
person climbing|climber|mountain
man climbing|climber|mountain
woman climbing|climber|mountain
person fencing|fencer|sword
horse racing|jockey|racehorse
skier|snow
snowboarder|ski|sport
person golfing|ball|birdie
man golfing|ball|birdie
woman golfing|ball|birdie
person surfing|beach|ocean
man surfing|beach|ocean
woman surfing|beach|ocean
person rowing boat|canoe|cruise
man rowing boat|canoe|cruise
woman rowing boat|canoe|cruise
person swimming|freestyle|sport
man swimming|freestyle|sport
woman swimming|freestyle|sport
person bouncing ball|athletic|basketball
man bouncing ball|athletic|basketball
woman bouncing ball|athletic|basketball
person lifting weights|barbell|bodybuilder
man lifting weights|barbell|bodybuilder
woman lifting weights|barbell|bodybuilder
person biking|bicycle|bicyclist
man biking|bicycle|bicyclist
woman biking|bicycle|bicyclist
person mountain biking|bicycle|bicyclist
man mountain biking|bicycle|bicyclist
woman mountain biking|bicycle|bicyclist
person cartwheeling|active|excited
man cartwheeling|active|excited
woman cartwheeling|active|excited
people wrestling|combat|duel
men wrestling|combat|duel
women wrestling|combat|duel
person playing water polo|sport|swimming
man playing water polo|sport|swimming
woman playing water polo|sport|swimming
person playing handball|athletics|catch
man playing handball|athletics|catch
woman playing handball|athletics|catch
person juggling|act|balance
man juggling|act|balance
woman juggling|act|balance
person in lotus position|cross|legged
man in lotus position|cross|legged
woman in lotus position|cross|legged
person taking bath|bathtub|tub
person in bed|bedtime|good
people holding hands|bae|bestie
women holding hands|bae|bestie
woman and man holding hands|bae|bestie
men holding hands|bae|bestie
kiss|anniversary|babe
kiss: woman, man|anniversary|babe
kiss: man, man|anniversary|babe
kiss: woman, woman|anniversary|babe
couple with heart|anniversary|babe
couple with heart: woman, man|anniversary|babe
couple with heart: man, man|anniversary|babe
couple with heart: woman, woman|anniversary|babe
family: man, woman, boy|child
family: man, woman, girl|child
family: man, woman, girl, boy|child
family: man, woman, boy, boy|child
family: man, woman, girl, girl|child
family: man, man, boy|child
family: man, man, girl|child
family: man, man, girl, boy|child
family: man, man, boy, boy|child
family: man, man, girl, girl|child
family: woman, woman, boy|child
family: woman, woman, girl|child
family: woman, woman, girl, boy|child
family: woman, woman, boy, boy|child
family: woman, woman, girl, girl|child
family: man, boy|child
family: man, boy, boy|child
family: man, girl|child
family: man, girl, boy|child
family: man, girl, girl|child
family: woman, boy|child
family: woman, boy, boy|child
family: woman, girl|child
family: woman, girl, boy|child
family: woman, girl, girl|child
speaking head|face|silhouette
bust in silhouette|mysterious|shadow
busts in silhouette|bff|everyone
people hugging|comfort|embrace
family|child
footprints|barefoot|clothing
monkey face|animal|banana
monkey|animal|banana
gorilla|animal
orangutan|animal|ape
dog face|adorbs|animal
dog|animals
guide dog|accessibility|animal
service dog|accessibility|animal
poodle|animal|dog
wolf|animal|face
fox|animal|face
raccoon|animal|curious
cat face|animal|kitten
cat|animals
black cat|animal|feline
lion|alpha|animal
tiger face|animal|big
tiger|animal|big
leopard|animal|big
horse face|animal|dressage
moose|alces|animal
donkey|animal|ass
horse|animal|equestrian
unicorn|face
zebra|animal|stripe
deer|animal
bison|animal|buffalo
cow face|animal|farm
ox|animals
water buffalo|animal|zoo
cow|animals
pig face|animal|bacon
pig|animal|bacon
boar|animal|pig
pig nose|animal|face
ram|animal|aries
ewe|animal|baa
goat|animal|capricorn
camel|animal|desert
two-hump camel|animal|bactrian
llama|alpaca|animal
giraffe|animal|spots
elephant|animal
mammoth|animal|extinction
rhinoceros|animal
hippopotamus|animal
mouse face|animal
mouse|animals
rat|animal
hamster|animal|face
rabbit face|animal|bunny
rabbit|animal|bunny
chipmunk|animal|squirrel
beaver|animal|dam
hedgehog|animal|spiny
bat|animal|vampire
bear|animal|face
polar bear|animal|arctic
koala|animal|australia
panda|animal|bamboo
sloth|lazy|slow
otter|animal|fishing
skunk|animal|stink
kangaroo|animal|joey
badger|animal|honey
paw prints|feet|paws
turkey|bird|gobble
chicken|animal|bird
rooster|animal|bird
hatching chick|animal|baby
baby chick|animal|bird
front-facing baby chick|animal|bird
bird|animal|ornithology
penguin|animal|antarctica
dove|bird|fly
eagle|animal|bird
duck|animal|bird
swan|animal|bird
owl|animal|bird
dodo|animal|bird
feather|bird|flight
flamingo|animal|bird
peacock|animal|bird
parrot|animal|bird
wing|angelic|ascend
black bird|animal|beak
goose|animal|bird
frog|animal|face
crocodile|animal|zoo
turtle|animal|terrapin
lizard|animal|reptile
snake|animal|bearer
dragon face|animal|fairy
dragon|animal|fairy
sauropod|brachiosaurus|brontosaurus
T-Rex|dinosaur|rex
spouting whale|animal|beach
whale|animal|beach
dolphin|animal|beach
seal|animal|lion
fish|animal|dinner
tropical fish|animal|fishes
blowfish|animal
shark|animal|fish
octopus|animal|creature
spiral shell|animal|beach
coral|change|climate
jellyfish|animal|aquarium
crab|cancer|zodiac
lobster|animal|bisque
shrimp|food|shellfish
squid|animal|food
oyster|diving|pearl
snail|animal|escargot
butterfly|insect|pretty
bug|animal|garden
ant|animal|garden
honeybee|animal|bumblebee
beetle|animal|bug
lady beetle|animal|garden
cricket|animal|bug
cockroach|animal|insect
spider|animal|insect
spider web
scorpion|scorpius|zodiac
mosquito|bite|disease
fly|animal|disease
worm|animal|annelid
microbe|amoeba|bacteria
bouquet|anniversary|birthday
cherry blossom|flower|plant
white flower
lotus|beauty|buddhism
rosette|plant
rose|beauty|elegant
wilted flower|dying
hibiscus|flower|plant
sunflower|outdoors|plant
blossom|buttercup|dandelion
tulip|blossom|flower
hyacinth|bloom|bluebonnet
seedling|plant|sapling
potted plant|decor|grow
evergreen tree|christmas|forest
deciduous tree|forest|green
palm tree|beach|plant
cactus|desert|drought
sheaf of rice|ear|grain
herb|leaf|plant
shamrock|irish|plant
four leaf clover|4|four-leaf
maple leaf|falling
fallen leaf|autumn|falling
leaf fluttering in wind|blow
empty nest|branch|home
nest with eggs|bird|branch
mushroom|fungus|toadstool
grapes|dionysus|fruit
melon|cantaloupe|fruit
watermelon|fruit
tangerine|citrus
lemon|citrus|fruit
banana|fruit|potassium
pineapple|colada|fruit
mango|food|fruit
red apple|diet|food
green apple|fruit
pear|fruit
peach|fruit
cherries|berries|cherry
strawberry|fruit
blueberries|berry|bilberry
kiwi fruit|food
tomato|food|fruit
olive|food
coconut|colada|palm
avocado|food|fruit
eggplant|aubergine|vegetable
potato|food|vegetable
carrot|food|vegetable
ear of corn|crops|farm
hot pepper
bell pepper|capsicum|food
cucumber|food|pickle
leafy green|bok|burgers
broccoli|cabbage|wild
garlic|flavoring
onion|flavoring
peanuts|food|vegetable
beans|food|kidney
chestnut|almond|plant
ginger root|beer|health
pea pod|beanstalk
bread|carbs|food
croissant|bread|breakfast
baguette bread|food|french
flatbread|arepa|food
pretzel|convoluted|twisted
bagel|bakery|bread
pancakes|breakfast|crêpe
waffle|breakfast|indecisive
cheese wedge
meat on bone
poultry leg|bone|chicken
cut of meat|chop|lambchop
bacon|breakfast|food
hamburger|eat|fast
french fries|fast|food
pizza|cheese|food
hot dog|frankfurter|hotdog
sandwich|bread
taco|mexican
burrito|mexican|wrap
tamale|food|mexican
stuffed flatbread|falafel|food
falafel|chickpea|meatball
egg|breakfast|food
cooking|breakfast|easy
shallow pan of food|casserole|paella
pot of food|soup|stew
fondue|cheese|chocolate
bowl with spoon|breakfast|cereal
green salad|food
popcorn|movie
butter|dairy
salt|condiment|flavor
canned food
bento box|food
rice cracker|food
rice ball|food|japanese
cooked rice|food
curry rice|food
steaming bowl|chopsticks|food
spaghetti|food|meatballs
roasted sweet potato|food
oden|food|kebab
sushi|food
fried shrimp|prawn|tempura
fish cake with swirl|food|pastry
moon cake|autumn|festival
dango|dessert|japanese
dumpling|empanada|gyōza
fortune cookie|prophecy
takeout box|chopsticks|delivery
soft ice cream|dessert|food
shaved ice|dessert|restaurant
ice cream|dessert|food
doughnut|breakfast|dessert
cookie|chip|chocolate
birthday cake|bday|celebration
shortcake|dessert|pastry
cupcake|bakery|dessert
pie|apple|filling
chocolate bar|candy|dessert
candy|cavities|dessert
lollipop|candy|dessert
custard|dessert|pudding
honey pot|barrel|bear
baby bottle|babies|birth
glass of milk|drink
hot beverage|cafe|caffeine
teapot|brew|drink
teacup without handle|beverage|drink
sake|bar|beverage
bottle with popping cork|bar|drink
wine glass|alcohol|bar
cocktail glass|alcohol|bar
tropical drink|alcohol|bar
beer mug|alcohol|ale
clinking beer mugs|alcohol|bar
clinking glasses|celebrate|drink
tumbler glass|liquor|scotch
pouring liquid|accident|drink
cup with straw|drink|juice
bubble tea|boba|food
beverage box|juice|straw
mate|drink
ice|cold|cube
chopsticks|hashi|jeotgarak
fork and knife with plate|cooking|dinner
fork and knife|breakfast|breaky
spoon|eat|tableware
kitchen knife|chef|cooking
jar|condiment|container
amphora|aquarius|cooking
globe showing Europe-Africa|africa|earth
globe showing Americas|earth
globe showing Asia-Australia
globe with meridians|earth|internet
world map
map of Japan
compass|direction|magnetic
snow-capped mountain|cold
mountain
volcano|eruption|mountain
mount fuji|mountain|nature
camping
beach with umbrella
desert
desert island
national park
stadium
classical building
building construction|crane
brick|bricks|clay
rock|boulder|heavy
wood|log|lumber
hut|home|house
houses
derelict house|home
house|building|country
house with garden|building|country
office building|city|cubical
Japanese post office|building
post office|building|european
hospital|building|doctor
bank|building
hotel|building
love hotel|building
convenience store|24|building
school|building
department store|building
factory|building
Japanese castle|building
castle|building|european
wedding|chapel|hitched
Tokyo tower
Statue of Liberty|new
church|bless|chapel
mosque|islam|masjid
hindu temple
synagogue|jewish
shinto shrine|religion
kaaba|hajj|islam
fountain
tent|camping
foggy
night with stars
cityscape
sunrise over mountains|morning
sunrise|morning|nature
cityscape at dusk|building|evening
sunset|building|dusk
bridge at night
hot springs|hotsprings|steaming
carousel horse|entertainment
playground slide|amusement|park
ferris wheel|amusement|park
roller coaster|amusement|park
barber pole|cut|fresh
circus tent
locomotive|caboose|engine
railway car|electric|train
high-speed train|railway|shinkansen
bullet train|high-speed|nose
train|arrived|choo
metro|subway|travel
light rail|arrived|monorail
station|railway|train
tram|trolleybus
monorail|vehicle
mountain railway|car|trip
tram car|bus|trolley
bus|school|vehicle
oncoming bus|cars
trolleybus|tram
minibus|drive|van
ambulance|emergency|vehicle
fire engine|truck
police car|5–0|cops
oncoming police car
taxi|cabbie
oncoming taxi|cabbie
automobile|car|driving
oncoming automobile|cars
sport utility vehicle|car|drive
pickup truck|automobile|car
delivery truck|car|drive
articulated lorry|car|drive
tractor|vehicle
racing car|zoom
motorcycle|racing
motor scooter
manual wheelchair|accessibility
motorized wheelchair|accessibility
auto rickshaw|tuk
bicycle|bike|class
kick scooter
skateboard|skater|wheels
roller skate|blades|skates
bus stop|busstop
motorway|highway|road
railway track|train
oil drum
fuel pump|diesel|fuelpump
wheel|car|circle
police car light|alarm|alert
horizontal traffic light|intersection|signal
vertical traffic light|drove|intersection
stop sign|octagonal
construction|barrier
anchor|ship|tool
ring buoy|float|life
sailboat|resort|sailing
canoe|boat
speedboat|billionaire|lake
passenger ship
ferry|boat|passenger
motor boat|motorboat
ship|boat|passenger
airplane|aeroplane|fly
small airplane|aeroplane
airplane departure|aeroplane|check-in
airplane arrival|aeroplane|arrivals
parachute|hang-glide|parasail
seat|chair
helicopter|roflcopter|travel
suspension railway
mountain cableway|gondola|lift
aerial tramway|cable|car
satellite|space
rocket|launch|rockets
flying saucer|aliens|extra
bellhop bell|hotel
luggage|bag|packing
hourglass done|sand|time
hourglass not done|flowing|hours
watch|clock|time
alarm clock|hours|hrs
stopwatch|clock|time
timer clock
mantelpiece clock|time
twelve o’clock|12:00
twelve-thirty|12:30
one o’clock|1:00
one-thirty|1:30
two o’clock|2:00
two-thirty|2:30
three o’clock|3:00
three-thirty|30
four o’clock|4:00
four-thirty|30|4
five o’clock|5:00
five-thirty|30|5
six o’clock|6:00
six-thirty|30|6
seven o’clock|0|7
seven-thirty|30|7
eight o’clock|8:00
eight-thirty|30|8
nine o’clock|9:00
nine-thirty|30|9
ten o’clock|0|10
ten-thirty|10:30
eleven o’clock|11:00
eleven-thirty|11:30
new moon|dark|space
waxing crescent moon|dreams|space
first quarter moon|space
waxing gibbous moon|space
full moon|space
waning gibbous moon|space
last quarter moon|space
waning crescent moon|space
crescent moon|ramadan|space
new moon face|space
first quarter moon face|space
last quarter moon face|dreams
thermometer|weather
sun|bright|rays
full moon face|bright
sun with face|beach|bright
ringed planet|saturnine
star|astronomy|medium
glowing star|glittery|night
shooting star|falling|night
milky way|space
cloud|weather
sun behind cloud|cloudy|weather
cloud with lightning and rain|thunderstorm
sun behind small cloud|weather
sun behind large cloud|weather
sun behind rain cloud|weather
cloud with rain|weather
cloud with snow|cold|weather
cloud with lightning|weather
tornado|cloud|weather
fog|cloud|weather
wind face|blow|cloud
cyclone|dizzy|hurricane
rainbow|gay|genderqueer
closed umbrella|clothing|rain
umbrella|clothing|rain
umbrella with rain drops|clothing|weather
umbrella on ground|rain|sun
high voltage|danger|electric
snowflake|cold|weather
snowman|cold
snowman without snow|cold
comet|space
fire|af|burn
droplet|cold|comic
water wave|nature|ocean
jack-o-lantern|celebration|halloween
Christmas tree|celebration
fireworks|boom|celebration
sparkler|boom|celebration
firecracker|dynamite|explosive
sparkles|*|magic
balloon|birthday|celebrate
party popper|awesome|birthday
confetti ball|celebrate|celebration
tanabata tree|banner|celebration
pine decoration|bamboo|celebration
Japanese dolls|celebration|festival
carp streamer|celebration
wind chime|bell|celebration
moon viewing ceremony|celebration
red envelope|gift|good
ribbon|celebration
wrapped gift|birthday|bow
reminder ribbon|celebration
admission tickets
ticket|admission|stub
military medal|award|celebration
trophy|champion|champs
sports medal|award|gold
1st place medal|first|gold
2nd place medal|second|silver
3rd place medal|bronze|third
soccer ball|football|futbol
baseball|sport
softball|glove|sports
basketball|hoop|sport
volleyball|game
american football|bowl|sport
rugby football|sport
tennis|ball|racquet
flying disc|ultimate
bowling|ball|game
cricket game|ball|bat
field hockey|ball|game
ice hockey|game|puck
lacrosse|ball|goal
ping pong|ball|bat
badminton|birdie|game
boxing glove
martial arts uniform|judo|karate
goal net
flag in hole|golf|sport
ice skate|skating
fishing pole|entertainment|sport
diving mask|scuba|snorkeling
running shirt|athletics|sash
skis|snow|sport
sled|luge|sledge
curling stone|game|rock
bullseye|dart|direct
yo-yo|fluctuate|toy
kite|fly|soar
water pistol|gun|handgun
pool 8 ball|8ball|billiard
crystal ball|fairytale
magic wand|magician|witch
video game|controller|entertainment
joystick|game|video
slot machine|casino|gamble
game die|dice|entertainment
puzzle piece|clue|interlocking
teddy bear|plaything|plush
piñata|candy|celebrate
mirror ball|dance|disco
nesting dolls|babooshka|baboushka
spade suit|card|game
heart suit|card|emotion
diamond suit|card|game
club suit|card|clubs
chess pawn|dupe|expendable
joker|card|game
mahjong red dragon|game
flower playing cards|game|japanese
performing arts|actor|actress
framed picture|art|museum
artist palette|artsy|arty
thread|needle|sewing
sewing needle|embroidery|stitches
yarn|ball|crochet
knot|cord|rope
glasses|clothing|eye
sunglasses|dark|eye
goggles|dive|eye
lab coat|clothes|doctor
safety vest|emergency
necktie|clothing|employed
t-shirt|blue|casual
jeans|blue|casual
scarf|bundle|cold
gloves|hand
coat|brr|bundle
socks|stocking
dress|clothes|clothing
kimono|clothing|comfortable
sari|clothing|dress
one-piece swimsuit|bathing
briefs|bathing|one-piece
shorts|bathing|pants
bikini|bathing|beach
woman’s clothes|blouse|clothing
folding hand fan|clack|clap
purse|clothes|clothing
handbag|clothes|clothing
clutch bag|clothes|clothing
shopping bags|hotel
backpack|backpacking|bag
thong sandal|beach|flip
man’s shoe|brown|clothes
running shoe|athletic|clothes
hiking boot|backpacking|brown
flat shoe|ballet|comfy
high-heeled shoe|clothes|clothing
woman’s sandal|clothing|shoe
ballet shoes|dance
woman’s boot|clothes|clothing
hair pick|afro|comb
crown|clothing|family
woman’s hat|clothes|clothing
top hat|clothes|clothing
graduation cap|celebration|clothing
billed cap|baseball|bent
military helmet|army|soldier
rescue worker’s helmet|aid|cross
prayer beads|clothing|necklace
lipstick|cosmetics|date
ring|diamond|engaged
gem stone|diamond|engagement
muted speaker|quiet|silent
speaker low volume|soft|sound
speaker medium volume|sound
speaker high volume|loud|music
loudspeaker|address|communication
megaphone|cheering|sound
postal horn
bell|break|church
bell with slash|forbidden|mute
musical score|note
musical note|sound
musical notes|sound
studio microphone|music
level slider|music
control knobs|music
microphone|karaoke|music
headphone|earbud|sound
radio|entertainment|tbt
saxophone|instrument|music
trumpet|instrument|music
accordion|box|concertina
guitar|instrument|music
musical keyboard|instrument|piano
violin|instrument|music
banjo|music|stringed
drum|drumsticks|music
long drum|beat|conga
maracas|cha|dance
flute|band|fife
mobile phone|cell|communication
mobile phone with arrow|build|call
telephone
telephone receiver|communication|voip
pager|communication
fax machine|communication
battery
low battery|drained|electronic
electric plug|electricity
laptop|computer|office
desktop computer|monitor
printer|computer
keyboard|computer
computer mouse
trackball|computer
computer disk|minidisk|optical
floppy disk|computer
optical disk|blu-ray|cd
dvd|blu-ray|cd
abacus|calculation|calculator
movie camera|bollywood|cinema
film frames|cinema|movie
film projector|cinema|movie
clapper board|action|movie
television|tv|video
camera|photo|selfie
camera with flash|video
video camera|camcorder|tbt
videocassette|old|school
magnifying glass tilted left|lab|left-pointing
magnifying glass tilted right|contact|lab
candle|light
light bulb|comic|electric
flashlight|electric|tool
red paper lantern|bar|light
diya lamp|light|oil
notebook with decorative cover|decorated|education
closed book|education
open book|education|fantasy
green book|education|fantasy
blue book|education|fantasy
orange book|education|fantasy
books|education|fantasy
notebook
ledger|notebook
page with curl|document|paper
scroll|paper
page facing up|document|paper
newspaper|communication
rolled-up newspaper
bookmark tabs|marker
bookmark
label|tag
coin|dollar|euro
money bag|bank|bet
yen banknote|bill|currency
dollar banknote|bill|currency
euro banknote|100|bill
pound banknote|billion
money with wings|banknote
credit card|bank|cash
receipt|accounting|bookkeeping
chart increasing with yen|bank|currency
envelope|e-mail|email
e-mail|email|letter
incoming envelope|delivering|e-mail
envelope with arrow|communication|down
outbox tray|email|letter
inbox tray|email|letter
package|box|communication
closed mailbox with raised flag|communication|postbox
closed mailbox with lowered flag|postbox
open mailbox with raised flag|postbox
open mailbox with lowered flag|postbox
postbox|mailbox
ballot box with ballot
pencil
black nib|pen
fountain pen
pen|ballpoint
paintbrush|painting
crayon
memo|communication|media
briefcase|office
file folder
open file folder
card index dividers
calendar|date
tear-off calendar
spiral notepad
spiral calendar|pad
card index|old|rolodex
chart increasing|data|graph
chart decreasing|data|down
bar chart|data|graph
clipboard|do|list
pushpin|collage
round pushpin|location|map
paperclip
linked paperclips
straight ruler|angle|edge
triangular ruler|angle|math
scissors|cutting
card file box
file cabinet|filing|paper
wastebasket|can|garbage
locked|closed|private
unlocked|cracked|open
locked with pen|ink|nib
locked with key|bike|closed
key|keys|lock
old key|clue|lock
hammer|home|improvement
axe|chop|hatchet
pick|hammer|mining
hammer and pick|tool
hammer and wrench|spanner|tool
dagger|knife|weapon
crossed swords|weapon
bomb|boom|comic
boomerang|rebound|repercussion
bow and arrow|archery
shield|weapon
carpentry saw|carpenter|cut
wrench|home|improvement
screwdriver|flathead|handy
nut and bolt|home|improvement
gear|cogwheel
clamp|compress|tool
balance scale|justice|libra
white cane|accessibility|blind
link|links
chains
hook|catch|crook
toolbox|chest|mechanic
magnet|attraction|horseshoe
ladder|climb|rung
alembic|chemistry|tool
test tube|chemistry
petri dish|bacteria|biologist
dna|biologist|evolution
microscope|experiment|lab
telescope|contact|extraterrestrial
satellite antenna|aliens|contact
syringe|doctor|flu
drop of blood|bleed|donation
pill|doctor|drugs
adhesive bandage
crutch|aid|cane
stethoscope|doctor|heart
x-ray|bones|doctor
door|back|closet
elevator|accessibility|hoist
mirror|makeup|reflection
window|air|frame
bed|hotel|sleep
couch and lamp|hotel
chair|seat|sit
toilet|bathroom
plunger|cup|force
shower|water
bathtub
mouse trap|bait|cheese
razor|sharp|shave
lotion bottle|moisturizer|shampoo
safety pin|diaper|punk
broom|cleaning|sweeping
basket|farming|laundry
roll of paper|toilet|towels
bucket|cask|pail
soap|bar|bathing
bubbles|burp|clean
toothbrush|bathroom|clean
sponge|absorbing|cleaning
fire extinguisher|quench
shopping cart|trolley
cigarette|smoking
coffin|dead|death
headstone|cemetery|dead
funeral urn|ashes|death
nazar amulet|bead|blue
hamsa|amulet|fatima
moai|face|moyai
placard|demonstration|notice
identification card|credentials|document
ATM sign|automated
litter in bin sign|litterbin
potable water|drinking
wheelchair symbol|access|handicap
men’s room|bathroom|lavatory
women’s room|bathroom|lavatory
restroom|bathroom|lavatory
baby symbol|changing
water closet|bathroom|lavatory
passport control
customs|packing
baggage claim|arrived|bags
left luggage|baggage|case
warning|caution
children crossing|pedestrian|traffic
no entry|do|fail
prohibited|entry|forbidden
no bicycles|bike|forbidden
no smoking|forbidden|not
no littering|forbidden|not
non-potable water|dry|non-drinking
no pedestrians|forbidden|not
no mobile phones|cell|forbidden
no one under eighteen|18|age
radioactive|sign
biohazard|sign
up arrow|cardinal|direction
up-right arrow|direction|intercardinal
right arrow|cardinal|direction
down-right arrow|direction|intercardinal
down arrow|cardinal|direction
down-left arrow|direction|intercardinal
left arrow|cardinal|direction
up-left arrow|direction|intercardinal
up-down arrow
left-right arrow
right arrow curving left
left arrow curving right
right arrow curving up
right arrow curving down
clockwise vertical arrows|refresh|reload
counterclockwise arrows button|again|anticlockwise
BACK arrow
END arrow
ON! arrow|mark
SOON arrow|brb|omw
TOP arrow|homie
place of worship|pray|religion
atom symbol|atheist
om|hindu|religion
star of David|jew
wheel of dharma|buddhist|religion
yin yang|difficult|lives
latin cross|christian
orthodox cross|christian|religion
star and crescent|islam|muslim
peace symbol|healing|peaceful
menorah|candelabrum|candlestick
dotted six-pointed star|fortune|jewish
khanda|deg|fateh
Aries|horoscope
Taurus|bull|horoscope
Gemini|horoscope
Cancer|crab
Leo|horoscope
Virgo|horoscope
Libra|balance|horoscope
Scorpio|horoscope
Sagittarius|archer|horoscope
Capricorn|goat
Aquarius|bearer
Pisces|fish|horoscope
Ophiuchus|bearer
shuffle tracks button|arrow|crossed
repeat button|arrow|clockwise
repeat single button|arrow|clockwise
play button|arrow|right
fast-forward button|arrow|double
next track button|arrow|scene
play or pause button|arrow|right
reverse button|arrow|left
fast reverse button|arrow|double
last track button|arrow|previous
upwards button|arrow|red
fast up button|arrow|double
downwards button|arrow|red
fast down button|arrow|double
pause button|bar|double
stop button|square
record button|circle
eject button
cinema|camera|film
dim button|brightness|low
bright button|brightness|light
antenna bars|cell|communication
wireless|broadband|computer
vibration mode|cell|communication
mobile phone off|cell|telephone
female sign|woman
male sign|man
transgender symbol
multiply|cancel|multiplication
plus|+
minus|-|heavy
divide|division|heavy
heavy equals sign|answer|equality
infinity|forever|unbounded
double exclamation mark|!!
exclamation question mark|!?
red question mark|?|punctuation
white question mark|?|outlined
white exclamation mark|!|outlined
red exclamation mark|!|punctuation
wavy dash|punctuation
currency exchange|bank|money
heavy dollar sign|billion|cash
medical symbol|aesculapius|medicine
recycling symbol|recycle
fleur-de-lis|knights
trident emblem|anchor|poseidon
name badge
Japanese symbol for beginner|chevron|green
hollow red circle|heavy|large
check mark button|checked|checkmark
check box with check|ballot|checked
check mark|checked|checkmark
cross mark|cancel|multiplication
cross mark button|multiplication|multiply
curly loop
double curly loop
part alternation mark
eight-spoked asterisk|*
eight-pointed star|*
sparkle|*
copyright
registered
trade mark|tm|trademark
keycap: #
keycap: *
keycap: 0|zero
keycap: 1|one
keycap: 2|two
keycap: 3|three
keycap: 4|four
keycap: 5|five
keycap: 6|six
keycap: 7|seven
keycap: 8|eight
keycap: 9|nine
keycap: 10
input latin uppercase|abcd|letters
input latin lowercase|abcd|letters
input numbers|1234
input symbols|%|&
input latin letters|abc|alphabet
A button (blood type)
AB button (blood type)
B button (blood type)
CL button
COOL button
FREE button
information
ID button|identity
circled M
NEW button
NG button
O button (blood type)
OK button|okay
P button|parking
SOS button|help
UP! button|mark
VS button|versus
Japanese “here” button|katakana
Japanese “service charge” button|katakana
Japanese “monthly amount” button|ideograph
Japanese “not free of charge” button|ideograph
Japanese “reserved” button|ideograph
Japanese “bargain” button|ideograph
Japanese “discount” button|ideograph
Japanese “free of charge” button|ideograph
Japanese “prohibited” button|ideograph
Japanese “acceptable” button|ideograph
Japanese “application” button|ideograph
Japanese “passing grade” button|ideograph
Japanese “vacancy” button|ideograph
Japanese “congratulations” button|ideograph
Japanese “secret” button|ideograph
Japanese “open for business” button|ideograph
Japanese “no vacancy” button|ideograph
red circle|geometric
orange circle
yellow circle
green circle
blue circle|geometric
purple circle
brown circle
black circle|geometric
white circle|geometric
red square|card|penalty
orange square
yellow square|card|penalty
green square
blue square
purple square
brown square
black large square|geometric
white large square|geometric
black medium square|geometric
white medium square|geometric
black medium-small square|geometric
white medium-small square|geometric
black small square|geometric
white small square|geometric
large orange diamond|geometric
large blue diamond|geometric
small orange diamond|geometric
small blue diamond|geometric
red triangle pointed up|geometric
red triangle pointed down|geometric
diamond with a dot|comic|geometric
radio button|geometric
white square button|geometric|outlined
black square button|geometric
chequered flag|checkered|finish
triangular flag|construction|golf
crossed flags|celebration|japanese
black flag|waving
white flag|waving
rainbow flag|bisexual|gay
transgender flag|blue|light
pirate flag|jolly|plunder
flag: Ascension Island|AC
flag: Andorra|AD
flag: United Arab Emirates|AE
flag: Afghanistan
flag: Antigua & Barbuda|AG
flag: Anguilla|AI
flag: Albania
flag: Armenia|AM
flag: Angola|AO
flag: Antarctica|AQ
flag: Argentina
flag: American Samoa|AS
flag: Austria|AT
flag: Australia
flag: Aruba|AW
flag: Åland Islands|AX
flag: Azerbaijan
flag: Bosnia & Herzegovina|BA
flag: Barbados|BB
flag: Bangladesh|BD
flag: Belgium
flag: Burkina Faso|BF
flag: Bulgaria|BG
flag: Bahrain|BH
flag: Burundi|BI
flag: Benin|BJ
flag: St. Barthélemy|BL
flag: Bermuda|BM
flag: Brunei|BN
flag: Bolivia
flag: Caribbean Netherlands|BQ
flag: Brazil
flag: Bahamas|BS
flag: Bhutan|BT
flag: Bouvet Island|BV
flag: Botswana|BW
flag: Belarus|BY
flag: Belize|BZ
flag: Canada
flag: Cocos (Keeling) Islands|CC
flag: Congo - Kinshasa|CD
flag: Central African Republic|CF
flag: Congo - Brazzaville|CG
flag: Switzerland|CH
flag: Côte d’Ivoire|CI
flag: Cook Islands|CK
flag: Chile|CL
flag: Cameroon|CM
flag: China|CN
flag: Colombia
flag: Clipperton Island|CP
flag: Costa Rica|CR
flag: Cuba
flag: Cape Verde|CV
flag: Curaçao|CW
flag: Christmas Island|CX
flag: Cyprus
flag: Czechia
flag: Germany|DE
flag: Diego Garcia|DG
flag: Djibouti
flag: Denmark|DK
flag: Dominica|DM
flag: Dominican Republic
flag: Algeria|DZ
flag: Ceuta & Melilla|EA
flag: Ecuador
flag: Estonia|EE
flag: Egypt
flag: Western Sahara|EH
flag: Eritrea
flag: Spain|ES
flag: Ethiopia
flag: European Union
flag: Finland
flag: Fiji|FJ
flag: Falkland Islands|FK
flag: Micronesia|FM
flag: Faroe Islands|FO
flag: France
flag: Gabon
flag: United Kingdom|GB
flag: Grenada|GD
flag: Georgia
flag: French Guiana|GF
flag: Guernsey|GG
flag: Ghana
flag: Gibraltar
flag: Greenland|GL
flag: Gambia|GM
flag: Guinea|GN
flag: Guadeloupe|GP
flag: Equatorial Guinea|GQ
flag: Greece
flag: South Georgia & South Sandwich Islands|GS
flag: Guatemala|GT
flag: Guam
flag: Guinea-Bissau|GW
flag: Guyana|GY
flag: Hong Kong SAR China|HK
flag: Heard & McDonald Islands|HM
flag: Honduras|HN
flag: Croatia|HR
flag: Haiti|HT
flag: Hungary
flag: Canary Islands|IC
flag: Indonesia|ID
flag: Ireland|IE
flag: Israel|IL
flag: Isle of Man|IM
flag: India
flag: British Indian Ocean Territory|IO
flag: Iraq|IQ
flag: Iran
flag: Iceland|IS
flag: Italy
flag: Jersey
flag: Jamaica|JM
flag: Jordan
flag: Japan|JP
flag: Kenya
flag: Kyrgyzstan|KG
flag: Cambodia|KH
flag: Kiribati
flag: Comoros|KM
flag: St. Kitts & Nevis|KN
flag: North Korea|KP
flag: South Korea|KR
flag: Kuwait|KW
flag: Cayman Islands|KY
flag: Kazakhstan|KZ
flag: Laos
flag: Lebanon|LB
flag: St. Lucia|LC
flag: Liechtenstein
flag: Sri Lanka|LK
flag: Liberia|LR
flag: Lesotho|LS
flag: Lithuania|LT
flag: Luxembourg
flag: Latvia|LV
flag: Libya|LY
flag: Morocco|MA
flag: Monaco|MC
flag: Moldova|MD
flag: Montenegro|ME
flag: St. Martin|MF
flag: Madagascar|MG
flag: Marshall Islands|MH
flag: North Macedonia|MK
flag: Mali|ML
flag: Myanmar (Burma)|MM
flag: Mongolia|MN
flag: Macao SAR China|MO
flag: Northern Mariana Islands|MP
flag: Martinique|MQ
flag: Mauritania|MR
flag: Montserrat|MS
flag: Malta|MT
flag: Mauritius|MU
flag: Maldives|MV
flag: Malawi|MW
flag: Mexico|MX
flag: Malaysia|MY
flag: Mozambique|MZ
flag: Namibia
flag: New Caledonia|NC
flag: Niger|NE
flag: Norfolk Island|NF
flag: Nigeria|NG
flag: Nicaragua
flag: Netherlands|NL
flag: Norway
flag: Nepal|NP
flag: Nauru|NR
flag: Niue|NU
flag: New Zealand|NZ
flag: Oman
flag: Panama
flag: Peru
flag: French Polynesia|PF
flag: Papua New Guinea|PG
flag: Philippines
flag: Pakistan|PK
flag: Poland|PL
flag: St. Pierre & Miquelon|PM
flag: Pitcairn Islands|PN
flag: Puerto Rico|PR
flag: Palestinian Territories|PS
flag: Portugal|PT
flag: Palau|PW
flag: Paraguay|PY
flag: Qatar
flag: Réunion|RE
flag: Romania
flag: Serbia|RS
flag: Russia
flag: Rwanda
flag: Saudi Arabia
flag: Solomon Islands|SB
flag: Seychelles|SC
flag: Sudan|SD
flag: Sweden|SE
flag: Singapore|SG
flag: St. Helena|SH
flag: Slovenia|SI
flag: Svalbard & Jan Mayen|SJ
flag: Slovakia|SK
flag: Sierra Leone|SL
flag: San Marino|SM
flag: Senegal|SN
flag: Somalia
flag: Suriname|SR
flag: South Sudan|SS
flag: São Tomé & Príncipe|ST
flag: El Salvador|SV
flag: Sint Maarten|SX
flag: Syria
flag: Eswatini|SZ
flag: Tristan da Cunha|TA
flag: Turks & Caicos Islands|TC
flag: Chad|TD
flag: French Southern Territories|TF
flag: Togo|TG
flag: Thailand
flag: Tajikistan|TJ
flag: Tokelau|TK
flag: Timor-Leste|TL
flag: Turkmenistan|TM
flag: Tunisia|TN
flag: Tonga
flag: Türkiye|TR
flag: Trinidad & Tobago|TT
flag: Tuvalu|TV
flag: Taiwan|TW
flag: Tanzania|TZ
flag: Ukraine|UA
flag: Uganda
flag: U.S. Outlying Islands|UM
flag: United Nations
flag: United States|US
flag: Uruguay|UY
flag: Uzbekistan
flag: Vatican City
flag: St. Vincent & Grenadines|VC
flag: Venezuela
flag: British Virgin Islands|VG
flag: U.S. Virgin Islands
flag: Vietnam|VN
flag: Vanuatu|VU
flag: Wallis & Futuna|WF
flag: Samoa|WS
flag: Kosovo|XK
flag: Yemen
flag: Mayotte|YT
flag: South Africa|ZA
flag: Zambia|ZM
flag: Zimbabwe|ZW
flag: England|gbeng
flag: Scotland|gbsct
flag: Wales|gbwls`;
