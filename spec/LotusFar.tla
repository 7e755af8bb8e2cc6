------------------------------ MODULE LotusFar -------------------------------
(* A row whose value its home has no room for: src/node/lotus_table_far.c,   *)
(* lotus_far.c, lotus_cells.c (docs/protocols/lotus.md, F1 to F6).  One row, *)
(* workers of its owner, one memory server whose process may die once.  Each *)
(* worker has a lane to the server and one back, in order, of one life of    *)
(* the pair; `Off' names rules that are switched off.                        *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Workers,
  Writes,    \* of the row, at most
  Stores,    \* STOREs, at most
  Deaths,    \* of the server's process
  Depth,     \* messages of one lane, at most
  Off

VARIABLES
  ver,       \* the row's version, which is its value
  state,     \* its record: "near", "clean", "far"
  cell,      \* the name in it: [id, life]; id 0: none
  lost,      \* its slot is
  ids,       \* of cells, so far
  life,      \* of the pair, as the server has it
  seen,      \* per worker: the life that its view says
  cells,     \* at the server: id -> version
  to, back,  \* lanes, per worker
  store,     \* per worker: the row that it stores: [id, life, ver]; id 0: none
  fetch,     \* per worker: the cell that its item waits for; id 0: none
  later,     \* per worker: cells to be forgotten in a view that it has not
  wrong      \* a reader got what the row is not, or took for lost what was there

vars == <<ver, state, cell, lost, ids, life, seen, cells, to, back, store, fetch, later, wrong>>

On(r) == r \notin Off
None == [id |-> 0, life |-> 0]
NoStore == [id |-> 0, life |-> 0, ver |-> 0]
Alive(w, c) == c.life = seen[w]
Gone(w, c) == ~Alive(w, c) /\ (c.life < seen[w] \/ ~On("behind"))
\* S of whoever waits for a value is what keeps writers and victims out (F3, F6).
Locked == \E w \in Workers : fetch[w].id # 0

\* What a worker of an older life, or to a server of a newer one, says is lost.
Put(w, m) ==
  IF seen[w] = life THEN [to EXCEPT ![w] = Append(@, m)] ELSE to
Forget(w, c) ==
  IF c.id # 0 /\ c.life = seen[w] THEN Put(w, [k |-> "FORGET", id |-> c.id, v |-> 0]) ELSE to
RECURSIVE ForgetAll(_)
ForgetAll(cs) ==
  IF cs = {} THEN <<>>
  ELSE LET c == CHOOSE c \in cs : TRUE
       IN <<[k |-> "FORGET", id |-> c.id, v |-> 0]>> \o ForgetAll(cs \ {c})
Later(w, c) ==
  IF c.id # 0 /\ c.life > seen[w] /\ On("behind") THEN [later EXCEPT ![w] = @ \cup {c}] ELSE later
Room(w) == Len(to[w]) < Depth /\ Len(back[w]) < Depth
----------------------------------------------------------------------------
Init ==
  /\ ver = 1 /\ state = "near" /\ cell = None /\ lost = FALSE
  /\ ids = 0 /\ life = 1 /\ seen = [w \in Workers |-> 1]
  /\ cells = <<>>
  /\ to = [w \in Workers |-> <<>>] /\ back = [w \in Workers |-> <<>>]
  /\ store = [w \in Workers |-> NoStore] /\ fetch = [w \in Workers |-> None]
  /\ later = [w \in Workers |-> {}] /\ wrong = FALSE

\* X: taken, written under, and let go.
Write(w) ==
  /\ ~lost /\ ~Locked /\ ver < 1 + Writes /\ Room(w)
  /\ ver' = ver + 1 /\ state' = "near" /\ cell' = None
  /\ to' = Forget(w, cell) /\ later' = Later(w, cell)
  /\ UNCHANGED <<lost, ids, life, seen, cells, back, store, fetch, wrong>>

\* It is to make room: without a word if it is in a cell that is alive.
LetGo(w) ==
  /\ ~lost /\ ~Locked /\ state = "clean" /\ Alive(w, cell)
  /\ state' = "far"
  /\ UNCHANGED <<ver, cell, lost, ids, life, seen, cells, to, back, store, fetch, later, wrong>>

\* Its cell is gone, and it is near.
Home(w) ==
  /\ ~lost /\ ~Locked /\ state = "clean" /\ Gone(w, cell)
  /\ state' = "near" /\ cell' = None
  /\ UNCHANGED <<ver, lost, ids, life, seen, cells, to, back, store, fetch, later, wrong>>

Store(w) ==
  /\ ~lost /\ state = "near" /\ store[w].id = 0 /\ ids < Stores /\ Room(w)
  /\ LET id == IF On("once") THEN ids + 1 ELSE 1 IN
     /\ store' = [store EXCEPT ![w] = [id |-> id, life |-> seen[w], ver |-> ver]]
     /\ to' = Put(w, [k |-> "STORE", id |-> id, v |-> ver])
  /\ ids' = ids + 1
  /\ UNCHANGED <<ver, state, cell, lost, life, seen, cells, back, fetch, later, wrong>>

\* An item reads it, under S.
Read(w) ==
  /\ ~lost /\ state = "far" /\ fetch[w].id = 0 /\ Room(w) /\ (Alive(w, cell) \/ Gone(w, cell))
  /\ IF Alive(w, cell)
     THEN /\ fetch' = [fetch EXCEPT ![w] = cell]
          /\ to' = Put(w, [k |-> "FETCH", id |-> cell.id, v |-> 0])
          /\ UNCHANGED <<lost, wrong>>
     ELSE /\ lost' = TRUE /\ wrong' = (wrong \/ cell.life = life) /\ UNCHANGED <<fetch, to>>
  /\ UNCHANGED <<ver, state, cell, ids, life, seen, cells, back, store, later>>

Has(id) == id \in DOMAIN cells
Serve(w) ==
  /\ seen[w] = life /\ to[w] # <<>> /\ Len(back[w]) < Depth
  /\ LET m == Head(to[w])
         Answer(k, v) == [back EXCEPT ![w] = Append(@, [k |-> k, id |-> m.id, v |-> v])]
     IN /\ to' = [to EXCEPT ![w] = Tail(@)]
        /\ CASE m.k = "STORE" ->
                  /\ cells' = [i \in DOMAIN cells \cup {m.id} |-> IF i = m.id THEN m.v ELSE cells[i]]
                  /\ back' = Answer("STORED", 0)
             [] m.k = "FETCH" ->
                  /\ back' = Answer("FETCHED", IF Has(m.id) THEN cells[m.id] ELSE 0)
                  /\ UNCHANGED cells
             [] m.k = "FORGET" ->
                  /\ cells' = [i \in DOMAIN cells \ {m.id} |-> cells[i]]
                  /\ UNCHANGED back
  /\ UNCHANGED <<ver, state, cell, lost, ids, life, seen, store, fetch, later, wrong>>

Stored(w) ==
  /\ seen[w] = life /\ back[w] # <<>> /\ Head(back[w]).k = "STORED" /\ Len(to[w]) < Depth
  /\ LET s == store[w]
         c == [id |-> s.id, life |-> s.life]
         goes == state = "near" /\ ~Locked /\ ~lost /\ (ver = s.ver \/ ~On("stored"))
     IN /\ back' = [back EXCEPT ![w] = Tail(@)]
        /\ store' = [store EXCEPT ![w] = NoStore]
        /\ IF goes
           THEN /\ state' = "far" /\ cell' = c /\ to' = to
           ELSE /\ to' = Forget(w, c) /\ UNCHANGED <<state, cell>>
  /\ UNCHANGED <<ver, lost, ids, life, seen, cells, fetch, later, wrong>>

Fetched(w) ==
  /\ seen[w] = life /\ back[w] # <<>> /\ Head(back[w]).k = "FETCHED"
  /\ LET v == Head(back[w]).v IN
     /\ back' = [back EXCEPT ![w] = Tail(@)]
     /\ fetch' = [fetch EXCEPT ![w] = None]
     /\ lost' = (lost \/ v = 0)
     /\ wrong' = (wrong \/ (v # 0 /\ v # ver))
     /\ state' = IF state = "far" /\ cell = fetch[w] /\ v # 0 THEN "clean" ELSE state
  /\ UNCHANGED <<ver, cell, ids, life, seen, cells, to, store, later>>

\* The server's process dies, and another one takes its place.
Die ==
  /\ life < 1 + Deaths
  /\ life' = life + 1 /\ cells' = <<>>
  /\ to' = [w \in Workers |-> <<>>] /\ back' = [w \in Workers |-> <<>>]
  /\ UNCHANGED <<ver, state, cell, lost, ids, seen, store, fetch, later, wrong>>

\* A worker's view says so: nothing comes any more of what it has asked.
Adopt(w) ==
  /\ seen[w] < life
  /\ seen' = [seen EXCEPT ![w] = life]
  /\ store' = [store EXCEPT ![w] = NoStore]
  /\ fetch' = [fetch EXCEPT ![w] = None]
  /\ lost' = (lost \/ fetch[w].id # 0)
  /\ later' = [later EXCEPT ![w] = {}]
  /\ to' = [to EXCEPT ![w] = @ \o ForgetAll(later[w])]
  /\ UNCHANGED <<ver, state, cell, ids, life, cells, back, wrong>>

Next == Die \/ \E w \in Workers :
  Write(w) \/ LetGo(w) \/ Home(w) \/ Store(w) \/ Read(w) \/ Serve(w) \/ Stored(w) \/ Fetched(w)
  \/ Adopt(w)
Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
ReadsAreRight == ~wrong
\* What a living cell is named for is in it, or on its way there.
FarIsThere == (state # "near" /\ cell.life = life /\ ~lost) =>
  (Has(cell.id) /\ cells[cell.id] = ver)
LostOnlyByDeath == lost => life > 1
\* Cells that no row names are on their way to be forgotten.
Quiet == \A w \in Workers :
  to[w] = <<>> /\ back[w] = <<>> /\ store[w].id = 0 /\ later[w] = {}
NoCellIsLeft == (Quiet /\ ~lost) => \A i \in DOMAIN cells : cell = [id |-> i, life |-> life]
\* For `reach_*'.
NeverClean == state # "clean"
NeverLost == ~lost
==============================================================================
