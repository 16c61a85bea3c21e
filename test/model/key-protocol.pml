/*
 * One billed creation under idempotency keys: what the controllers do, what the API may do, and what may
 * go wrong between them. docs/contributing/proof.md explains the rules; configurations.ts lists the configurations.
 *
 * A configuration is a set of environment variables of the compiled verifier, so that one compilation
 * serves all of them. Below, each variable stands at its declaration.
 */

/* The readings of the API's document. */
byte reading;
#define keyFirst (reading == 0)       /* The API looks the key up before it validates the body. */
#define refusalReplayed (reading == 1) /* It validates first; it stores and replays that refusal. */
#define refusalNotStored (reading == 2) /* It validates first, and does not store that refusal. */
#define refusalHidden (reading == 3)  /* It validates first, and stores that refusal, but never replays it. */
bool reuse409;    /* A key that holds another request refuses with a bare 409. */
bool effect5xx;   /* A 5xx may have had its effect. */
bool unreserved;  /* A key is not reserved while its request is carried out. */
bool overwrites;  /* A refusal replaces the stored answer. */

/* The world. */
byte controllers; /* 1 or 2, each with its own state. */
byte keys;        /* Attempts, at most 3. */
byte faults;      /* Crashes, lost answers, refusals, server errors and conflicts, in all. */
bool listed;      /* Reads show the resource once it exists. */
bool edited;      /* The file may change at any moment. */
bool putBack;     /* The state of controller 0 may be put back, once, to any earlier moment. */
bool ages;        /* 23 hours may pass, then 24: the API forgets the keys that are older. */
bool timely;      /* No request arrives after the wait (time-out + 30 s). Otherwise it arrives at any time. */
bool slow24h;     /* A request may travel for more than an hour. */

/* The controllers. */
bool calibrated;  /* They know whether the API replays refusals, and probe only where it does. */
bool askUnseen;   /* unconfirmed_servers: ask */
bool asksFirst;   /* A new state asks its first key before it buys. */
bool walksOn;     /* Where a key holds a body that the state never sent, it probes the next key before it asks the operator. */

/* One broken rule. */
bool trustFreshRefusal;
bool skipWait;
bool newKeyWhileOpen;
bool unrecordedProbe;
bool resendAfter5xx;
bool newKeyAfter5xx;
bool newKeyAfterRefusal;
bool refusalAnswersEarlierSend;
bool otherRequestIsFence;
bool bodyInKey;
bool probeFromBody;
bool resendEditedBody;
bool ignoreAge;
bool fenceWithoutAge;
bool noLookAfterFence;
bool endlessConflict;

#define CONTROLLERS 2
#define SLOTS 4

/* Bodies: 1 is the original, 2 the original after an edit of the file, 3 the probe (4 a probe made from body 2). */
#define ORIGINALS 2
#define BODIES 4
#define PROBE 3
#define PROBE_OF(c) (probeFromBody && wants[c] == 2 -> 4 : PROBE)
#define KEY(c, body) (bodyInKey && (body == 2 || body == 4) -> attempt[c] + 2 : attempt[c])

mtype = {
  /* Answers. */
  none,
  lost,          /* No answer, and given up on. */
  accepted,      /* 2xx, fresh or replayed. */
  serverError,   /* 5xx. */
  refused,       /* A fresh refusal: of an original for any reason, of a probe for another reason than its body. */
  replayed,      /* The replayed refusal of this very body. */
  invalid,       /* The fresh refusal of the probe's body. */
  otherRequest,  /* The key holds another request. */
  conflict,      /* 409. */

  /* Phases of a controller. */
  idle,          /* Nothing is recorded under the present key. */
  sending,       /* The original is recorded. */
  waiting,       /* It was given up on. */
  asking,        /* The probe is recorded. */
  replaying,     /* A recorded original goes out again: the key replays its answer, or carries it out once. */
  /* These end a run. */
  done,
  refusedQuestion,     /* Only the file, the token, the payment or the provider can lift this refusal. */
  unseenQuestion,      /* A server that no read shows, after a conclusive 5xx or with unconfirmed_servers: ask. */
  oldKeyQuestion,      /* The key is 23 h old. */
  keyConflictQuestion, /* The key holds the answer to a body that this state never sent. */
  attemptsQuestion     /* The last attempt is used up: the bound of the model. */
};
#define UNDER_WAY(c) (phase[c] == idle || phase[c] == sending || phase[c] == waiting || phase[c] == asking || phase[c] == replaying)

/* ------------------------------------------------------------------------------------------ the API */

/* A key holds nothing, the purchase by body 1 or 2, or the refusal of body 1, 2, 3 or 4. */
#define FREE 0
#define BOUGHT(body) (body)
#define REFUSED(body) (ORIGINALS + (body))
#define IS_FENCED(k) (stored[k] >= REFUSED(PROBE))

byte stored[SLOTS];
byte created;
byte age;                   /* 0; 1: 23 hours have passed; 2: the API has forgotten the old keys. */
bool isOld[SLOTS];          /* The key was first used at age 0. */
byte travelling[SLOTS * BODIES]; /* Requests that were given up on and may still arrive. */
byte travellers;
#define TRAVELLING(k, body) travelling[BODIES * (k) + (body) - 1]
byte underWay;              /* Originals of the first key past its look-up, where keys are not reserved. */

inline buy() {
  created++;
  assert(created <= 1)      /* Safety: at most one purchase. */
}

/* Carries a request out, with every answer that the document allows. */
inline api(k, body) {
  if
  :: stored[k] == FREE && body < PROBE -> buy(); stored[k] = BOUGHT(body); answer[c] = accepted
  :: stored[k] == FREE && body < PROBE && faults > 0 -> faults--; stored[k] = REFUSED(body); answer[c] = refused
  :: stored[k] == FREE && body < PROBE && faults > 0 && effect5xx -> faults--; buy(); answer[c] = serverError
  :: stored[k] == BOUGHT(body) && body < PROBE -> answer[c] = accepted
  :: stored[k] == REFUSED(body) && (body < PROBE || keyFirst || refusalReplayed) -> answer[c] = replayed
  :: stored[k] != FREE && stored[k] != REFUSED(body) && (body < PROBE && stored[k] != BOUGHT(body) || body >= PROBE && keyFirst) ->
    answer[c] = (reuse409 -> conflict : otherRequest)
  :: body >= PROBE && stored[k] == FREE ->
    answer[c] = invalid;
    if :: !refusalNotStored -> stored[k] = REFUSED(body) :: else fi
  :: body >= PROBE && stored[k] != FREE && !keyFirst && !(refusalReplayed && stored[k] == REFUSED(body)) ->
    answer[c] = invalid;
    if :: overwrites -> stored[k] = REFUSED(body) :: else fi
  /* 401, 402, 403, 429 before the key is looked up, and refusals that are not stored; 5xx without effect; 409. */
  :: faults > 0 -> faults--; answer[c] = refused
  :: faults > 0 -> faults--; answer[c] = serverError
  :: faults > 0 -> faults--; answer[c] = conflict
  fi
}

/* A request that was given up on arrives after all: nobody hears the answer. */
inline arrive(k, body) {
  if
  :: true                   /* It never arrives, or has no effect. */
  :: stored[k] == FREE && body < PROBE && unreserved && k == 0 -> underWay++
  :: stored[k] == FREE && body < PROBE && !(unreserved && k == 0) -> buy(); stored[k] = BOUGHT(body)
  :: stored[k] == FREE && body < PROBE -> stored[k] = REFUSED(body)
  :: stored[k] == FREE && body < PROBE && effect5xx -> buy()
  :: stored[k] == FREE && body >= PROBE && !refusalNotStored -> stored[k] = REFUSED(body)
  :: stored[k] != FREE && body >= PROBE && overwrites -> stored[k] = REFUSED(body)
  fi
}

proctype network() {
  byte i, k, body, passed;
end:
  do
  :: atomic {
      travellers > 0 ->
      /* Any one of them. */
      do
      :: travelling[i] == 0 -> i++
      :: travelling[i] > 0 -> break
      :: travelling[i] > 0 && passed + travelling[i] < travellers -> passed = passed + travelling[i]; i++
      od;
      travelling[i]--; travellers--; k = i / BODIES; body = i % BODIES + 1;
      arrive(k, body);
      i = 0; k = 0; body = 0; passed = 0
    }
  :: atomic {
      underWay > 0 -> underWay--; buy();
      if :: stored[0] == FREE -> stored[0] = BOUGHT(1) :: else fi
    }
  od
}

/* ---------------------------------------------------------------------------------- the controllers */

/* Durable, in the state: */
mtype phase[CONTROLLERS] = idle;
byte attempt[CONTROLLERS];
bool unconfirmed[CONTROLLERS]; /* A send of an original under the present key has no answer of its own. */
bool failed5xx[CONTROLLERS];   /* An original under the present key was answered with a 5xx. */
byte sent[CONTROLLERS];        /* The originals recorded under the present key, a bit each. */
byte firstSent[CONTROLLERS];   /* The age at the first of them. */
byte recorded[CONTROLLERS];    /* The body of the latest record. */
bool walking[CONTROLLERS];     /* An earlier key holds a body that this state never sent. */
/* Lost with the process: */
byte request[CONTROLLERS];     /* The body that goes out now. */
mtype answer[CONTROLLERS] = none;
byte tries[CONTROLLERS];       /* 409s in a row. */
byte freshly[CONTROLLERS];     /* Fresh refusals of the probe's body. */
bool held[CONTROLLERS];        /* The key holds an answer that is not the probe's. */
byte mismatched[CONTROLLERS];  /* Originals that the key refused as another request, a bit each. */
byte rounds[CONTROLLERS];      /* How often the original settled nothing, so that the probe went out again. */
/* The file: */
byte wants[CONTROLLERS] = 1;

#define LAST_TRY 2             /* Counted from 0: three in a row. */
#define LAST_ROUND 1
#define HAS(set, body) ((set & body) != 0)
#define FIRST_OF(set) ((set & 1) != 0 -> 1 : 2)
#define SHOWN (listed && created > 0)
#define TOO_OLD(c) (sent[c] != 0 && firstSent[c] < age)
#define REST(c) (sent[c] & (3 - mismatched[c]))
#define MAY_BE_UNSEEN(c) (!listed && (failed5xx[c] || unconfirmed[c] && askUnseen))

inline forget() {
  request[c] = 0; answer[c] = none; tries[c] = 0; freshly[c] = 0; held[c] = false; mismatched[c] = 0; rounds[c] = 0
}

inline finish(how) { forget(); phase[c] = how }

inline nextAttempt() {
  if
  :: attempt[c] + 1 < keys ->
    finish(idle);
    attempt[c]++; unconfirmed[c] = false; failed5xx[c] = false; sent[c] = 0; firstSent[c] = 0; recorded[c] = 0
  :: else -> finish(attemptsQuestion)
  fi
}

/* Records the probe. Where the API does not replay refusals, only the original can ask. */
inline ask() {
  tries[c] = 0; freshly[c] = 0;
  if
  :: calibrated && (refusalNotStored || refusalHidden) -> phase[c] = replaying
  :: else ->
    phase[c] = asking;
    if :: !unrecordedProbe -> recorded[c] = PROBE_OF(c) :: else fi
  fi
}

/* The key is 23 h old: reads decide, or the operator. */
inline tooOld() {
  if :: SHOWN -> finish(done) :: else -> finish(oldKeyQuestion) fi
}

/* A replayed refusal: nothing else was stored under this key, and nothing ever will be. */
inline closed() {
  if
  :: TOO_OLD(c) && !fenceWithoutAge && !ignoreAge -> tooOld()
  :: else ->
    if
    :: SHOWN && !noLookAfterFence -> finish(done)
    :: MAY_BE_UNSEEN(c) -> finish(unseenQuestion)
    :: else -> nextAttempt()
    fi
  fi
}

/* Asked only where the key does hold the answer to a body that this state never sent, as far as it can know. */
inline keyConflict() {
  assert(reuse409 || ages || refusalHidden ||
    stored[attempt[c]] != FREE && !IS_FENCED(attempt[c]) &&
    !(stored[attempt[c]] <= ORIGINALS && HAS(sent[c], stored[attempt[c]])));
  if
  :: walksOn && attempt[c] + 1 < keys -> nextAttempt(); walking[c] = true; ask()
  :: else -> finish(keyConflictQuestion)
  fi
}

inline record(body) {
  if :: sent[c] == 0 -> firstSent[c] = age :: else fi;
  sent[c] = sent[c] | body; recorded[c] = body
}

proctype controller(byte c) {
  byte slot;
end:
  do
  /* The answer of what goes out may be lost; the request then arrives later, or never. */
  :: atomic { request[c] != 0 ->
      assert(recorded[c] == request[c]); /* Safety: nothing is sent without a durable record. */
      slot = KEY(c, request[c]);
      if
      :: api(slot, request[c])
      :: TRAVELLING(slot, request[c]) < 2 && faults > 0 ->
        faults--; TRAVELLING(slot, request[c])++; travellers++; answer[c] = lost
      fi;
      slot = 0; request[c] = 0
    }

  /* The process dies. What was recorded may have been sent. */
  :: atomic { faults > 0 && phase[c] != idle && UNDER_WAY(c) ->
      faults--; forget();
      if :: sent[c] != 0 && phase[c] != asking -> unconfirmed[c] = true :: else fi;
      phase[c] = waiting
    }

  /* Reads decide first; then the original is recorded, or the probe of a state that asks its keys first. */
  :: atomic { phase[c] == idle ->
      if
      :: SHOWN && !noLookAfterFence -> finish(done)
      :: asksFirst && attempt[c] == 0 -> ask()
      :: else -> record(wants[c]); phase[c] = sending
      fi
    }

  :: atomic { phase[c] == sending && request[c] == 0 && answer[c] == none ->
      if
      :: TOO_OLD(c) && !ignoreAge -> tooOld()
      :: else -> request[c] = FIRST_OF(sent[c])
      fi
    }
  :: atomic { phase[c] == sending && answer[c] != none ->
      if
      :: answer[c] == accepted -> finish(done)
      :: answer[c] == lost -> answer[c] = none; unconfirmed[c] = true; phase[c] = waiting
      :: answer[c] == serverError ->
        answer[c] = none; failed5xx[c] = true;
        if
        :: resendAfter5xx -> skip
        :: else ->
          if
          :: SHOWN -> finish(done)
          :: !SHOWN && newKeyAfter5xx -> nextAttempt()
          :: else -> ask()
          fi
        fi
      :: answer[c] == refused ->
        /* It may be stored or not: the same key tells, once the cause is gone. */
        answer[c] = none;
        if
        :: finish(refusedQuestion)
        :: newKeyAfterRefusal -> nextAttempt()
        :: !newKeyAfterRefusal && wants[c] == recorded[c] -> skip
        :: !newKeyAfterRefusal && wants[c] != recorded[c] -> ask()
        fi
      :: answer[c] == replayed -> answer[c] = none; closed()
      :: answer[c] == otherRequest ->
        answer[c] = none;
        if
        :: otherRequestIsFence -> nextAttempt()
        :: else -> mismatched[c] = mismatched[c] | recorded[c]; ask()
        fi
      :: answer[c] == conflict ->
        answer[c] = none;
        if :: tries[c] < LAST_TRY -> tries[c]++ :: else -> ask() fi
      fi
    }

  :: atomic {
      phase[c] == waiting &&
      (!timely || skipWait || underWay + TRAVELLING(attempt[c], 1) + TRAVELLING(attempt[c], 2) == 0) ->
      if
      :: newKeyWhileOpen -> if :: SHOWN -> finish(done) :: else -> nextAttempt() fi
      :: else -> ask()
      fi
    }

  :: atomic { phase[c] == asking && request[c] == 0 && answer[c] == none ->
      if
      :: TOO_OLD(c) && !ignoreAge && !fenceWithoutAge -> tooOld()
      :: else -> request[c] = (unrecordedProbe -> PROBE : recorded[c])
      fi
    }
  :: atomic { phase[c] == asking && answer[c] != none ->
      if
      :: answer[c] == replayed && walking[c] -> finish(keyConflictQuestion)
      :: answer[c] == replayed && !walking[c] -> answer[c] = none; closed()
      :: answer[c] == otherRequest ->
        /* An original was sent under this key, so whoever sent it had closed every key before it. */
        answer[c] = none; tries[c] = 0; held[c] = true; walking[c] = false; phase[c] = replaying
      :: answer[c] == invalid ->
        answer[c] = none;
        if
        :: walking[c] && freshly[c] == 2 -> finish(keyConflictQuestion)
        :: trustFreshRefusal -> nextAttempt()
        :: !trustFreshRefusal && freshly[c] < 2 -> freshly[c]++
        :: !trustFreshRefusal && freshly[c] == 2 && !walking[c] -> freshly[c] = 0; tries[c] = 0; phase[c] = replaying
        fi
      :: answer[c] == conflict ->
        answer[c] = none;
        if
        :: !reuse409 || endlessConflict -> skip
        :: reuse409 && !endlessConflict && tries[c] < LAST_TRY -> tries[c]++
        :: else -> tries[c] = 0; phase[c] = replaying
        fi
      /* The question stays open. */
      :: answer[c] == refused || answer[c] == serverError || answer[c] == lost -> answer[c] = none
      fi
    }

  :: atomic { phase[c] == replaying && request[c] == 0 && answer[c] == none ->
      if
      :: TOO_OLD(c) && !ignoreAge -> tooOld()
      :: else ->
        if
        /* As far as this controller knows, the key holds nothing, so the original may be carried out: the reads go first. */
        :: SHOWN && !held[c] -> finish(done)
        :: MAY_BE_UNSEEN(c) && !held[c] -> finish(unseenQuestion)
        :: else ->
          /* The recorded bytes ask for their own answer. Only where all of them were refused may the file's present body go out. */
          if
          :: resendEditedBody && !HAS(mismatched[c], wants[c]) -> request[c] = wants[c]
          :: !resendEditedBody && (unconfirmed[c] || held[c]) && REST(c) != 0 -> request[c] = FIRST_OF(REST(c))
          :: !resendEditedBody && (!unconfirmed[c] && !held[c] || held[c] && REST(c) == 0) && !HAS(mismatched[c], wants[c]) ->
            request[c] = wants[c]
          :: else
          fi;
          if
          :: request[c] != 0 -> record(request[c])
          /* The probe has the last word: the key may be fenced. */
          :: request[c] == 0 && rounds[c] < LAST_ROUND -> rounds[c]++; ask()
          :: else -> keyConflict()
          fi
        fi
      fi
    }
  :: atomic { phase[c] == replaying && answer[c] != none ->
      if
      :: answer[c] == accepted -> finish(done)
      :: answer[c] == replayed -> answer[c] = none; closed()
      :: answer[c] == otherRequest ->
        answer[c] = none;
        if
        :: otherRequestIsFence -> nextAttempt()
        :: else -> held[c] = true; mismatched[c] = mismatched[c] | recorded[c]
        fi
      :: answer[c] == refused ->
        /* It answers this send alone. */
        answer[c] = none;
        if
        :: finish(refusedQuestion)
        :: refusalAnswersEarlierSend -> nextAttempt()
        :: !refusalAnswersEarlierSend && held[c] -> skip
        :: !refusalAnswersEarlierSend && !held[c] -> ask()
        fi
      :: answer[c] == serverError -> answer[c] = none; failed5xx[c] = true; ask()
      :: answer[c] == lost -> answer[c] = none; unconfirmed[c] = true; phase[c] = waiting
      :: answer[c] == conflict ->
        answer[c] = none;
        if
        :: !reuse409 -> skip
        :: reuse409 && tries[c] < LAST_TRY -> tries[c]++
        :: reuse409 && tries[c] == LAST_TRY && rounds[c] < LAST_ROUND -> rounds[c]++; ask()
        :: else -> keyConflict()
        fi
      fi
    }
  od
}

/* ---------------------------------------------------------------------------------------- the world */

proctype editor(byte c) { wants[c] = 2 }

/* The state of controller 0 as it was at one moment; at first it is empty. */
mtype savedPhase = idle;
byte savedAttempt, savedSent, savedFirstSent;
bool savedUnconfirmed, savedFailed5xx, savedWalking;

proctype copier() {
end:
  atomic { UNDER_WAY(0) ->
    savedPhase = phase[0]; savedAttempt = attempt[0]; savedSent = sent[0]; savedFirstSent = firstSent[0];
    savedUnconfirmed = unconfirmed[0]; savedFailed5xx = failed5xx[0]; savedWalking = walking[0]
  }
}

proctype restorer(byte c) {
  atomic { true ->
    forget();
    attempt[c] = savedAttempt; sent[c] = savedSent; firstSent[c] = savedFirstSent; failed5xx[c] = savedFailed5xx; walking[c] = savedWalking;
    unconfirmed[c] = savedUnconfirmed || savedSent != 0 && (savedPhase == sending || savedPhase == replaying);
    phase[c] = (savedPhase == idle -> idle : waiting)
  }
}

#define IS_USED(k) (stored[k] != FREE || TRAVELLING(k, 1) + TRAVELLING(k, 2) + TRAVELLING(k, 3) > 0)
inline forgetKey(k) {
  if
  :: isOld[k] ->
    isOld[k] = false; stored[k] = FREE;
    if
    :: !slow24h ->
      travellers = travellers - TRAVELLING(k, 1) - TRAVELLING(k, 2) - TRAVELLING(k, 3);
      TRAVELLING(k, 1) = 0; TRAVELLING(k, 2) = 0; TRAVELLING(k, 3) = 0
    :: else
    fi
  :: else
  fi
}

/* The key's age is checked within the minute in which a request goes out. */
#define NOTHING_GOES_OUT (request[0] == 0 && request[1] == 0)
proctype clock() {
  atomic { NOTHING_GOES_OUT -> age = 1; isOld[0] = IS_USED(0); isOld[1] = IS_USED(1); isOld[2] = IS_USED(2) }
  atomic { NOTHING_GOES_OUT -> age = 2; forgetKey(0); forgetKey(1); forgetKey(2) }
}

#define IS_SETTLED(c) (!UNDER_WAY(c) && (phase[c] != done || created == 1))

/* Liveness: a run that stops has ended in done or in a question, and nothing is done that was not bought. */
proctype watch() {
  atomic { timeout -> assert(IS_SETTLED(0) && (controllers == 1 || IS_SETTLED(1))) }
}

c_code {
  static int number_of(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
  }
}
#define NUMBER(name, otherwise) now.name = number_of(#name, otherwise)
#define FLAG(name) now.name = number_of(#name, 0) != 0

init {
  atomic {
    c_code {
      NUMBER(reading, 0); NUMBER(controllers, 1); NUMBER(keys, 2); NUMBER(faults, 3);
      FLAG(reuse409); FLAG(effect5xx); FLAG(unreserved); FLAG(overwrites);
      FLAG(listed); FLAG(edited); FLAG(putBack); FLAG(ages); FLAG(timely); FLAG(slow24h);
      FLAG(calibrated); FLAG(askUnseen); FLAG(asksFirst); FLAG(walksOn);
      FLAG(trustFreshRefusal); FLAG(skipWait); FLAG(newKeyWhileOpen); FLAG(unrecordedProbe); FLAG(resendAfter5xx);
      FLAG(newKeyAfter5xx); FLAG(newKeyAfterRefusal); FLAG(refusalAnswersEarlierSend); FLAG(otherRequestIsFence);
      FLAG(bodyInKey); FLAG(probeFromBody); FLAG(resendEditedBody); FLAG(ignoreAge); FLAG(fenceWithoutAge);
      FLAG(noLookAfterFence); FLAG(endlessConflict);
    };
    run network();
    run controller(0);
    if :: controllers == 2 -> run controller(1) :: else -> phase[1] = done fi;
    if
    :: edited ->
      run editor(0);
      if :: controllers == 2 -> if :: wants[1] = 2 :: true fi :: else fi
    :: else
    fi;
    if :: putBack -> run copier(); run restorer(0) :: else fi;
    if :: ages -> run clock() :: else fi;
    run watch()
  }
}
