"""The pool of threads that share the loops of kernels, as LLVM's language: POSIX threads, one kernel's loop at a time.

A loop that may be shared is a function of a number: it runs the rows of the share with that number, and says whether it
was left early. Shares are handed out in order. Where the pool is at work for another caller, or a loop is small, the
caller runs all shares itself: what a share computes is the same, whoever runs it.
"""

from __future__ import annotations

WORDS = 512
"""The 64-bit words of a pool, before those of its threads."""
LOCAL = 16
"""The words of a thread: its number, where it notes a fault, four words for that, the share that the fault is in."""
PLACE, FAULT, SHARE = 1, 2, 6
BOUND = 2
"""The word of a pool that says from how much work on a loop is shared."""

ALONE = f"""define internal i32 @alone(ptr %body, ptr %frame, i64 %count, ptr %fault) noinline nounwind optsize {{
entry:
  %own = alloca [2 x i64], align 64
  store i64 0, ptr %own
  %place = getelementptr i64, ptr %own, i64 {PLACE}
  store ptr %fault, ptr %place
  br label %head
head:
  %share = phi i64 [ 0, %entry ], [ %following, %run ]
  %there = icmp slt i64 %share, %count
  br i1 %there, label %run, label %fine
run:
  %status = call i32 %body(ptr %frame, i64 %share, ptr %own)
  %following = add i64 %share, 1
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %head, label %left
left:
  ret i32 1
fine:
  ret i32 0
}}"""
"""What runs all shares of a loop, one after the other; whether the loop was left."""

# Words of a pool: 0 the address of `dispatch`, 1 the number of threads, 2 the bound, 3 whether it is at work, 4 how many may
# still join, 5 how many have joined and not left, 6 how many have joined, 7 whether it ends, 8 the loop, 9 its frame, 10 the
# number of shares, 11 floating-point flags, 12 how many loops it has run; on lines of the cache of their own 32 the next share
# and 48 whether the loop is left; 64, 128 and 192 a mutex and two conditions; from 512 on what belongs to each thread.
_TEXT = """
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @sched_yield()
declare i32 @feclearexcept(i32)
declare i32 @fetestexcept(i32)
declare i32 @feraiseexcept(i32)

define internal ptr @word(ptr %pool, i64 %k) alwaysinline {
  %p = getelementptr i64, ptr %pool, i64 %k
  ret ptr %p
}

define internal ptr @local(ptr %pool, i64 %worker) alwaysinline {
  %k = mul i64 %worker, LOCAL
  %at = add i64 %k, WORDS
  %p = getelementptr i64, ptr %pool, i64 %at
  ret ptr %p
}

define void @prepare(ptr %pool, i64 %threads, i64 %bound) {
  %dispatch = ptrtoint ptr @dispatch to i64
  store i64 %dispatch, ptr %pool
  %p1 = call ptr @word(ptr %pool, i64 1)
  store i64 %threads, ptr %p1
  %p2 = call ptr @word(ptr %pool, i64 2)
  store i64 %bound, ptr %p2
  %m = call ptr @word(ptr %pool, i64 64)
  %w = call ptr @word(ptr %pool, i64 128)
  %d = call ptr @word(ptr %pool, i64 192)
  %r1 = call i32 @pthread_mutex_init(ptr %m, ptr null)
  %r2 = call i32 @pthread_cond_init(ptr %w, ptr null)
  %r3 = call i32 @pthread_cond_init(ptr %d, ptr null)
  ret void
}

define internal void @take_shares(ptr %pool, i64 %worker) {
entry:
  %local = call ptr @local(ptr %pool, i64 %worker)
  store i64 %worker, ptr %local
  %place = getelementptr i64, ptr %local, i64 PLACE
  %words = getelementptr i64, ptr %local, i64 FAULT
  store ptr %words, ptr %place
  %p8 = call ptr @word(ptr %pool, i64 8)
  %body = load ptr, ptr %p8
  %p9 = call ptr @word(ptr %pool, i64 9)
  %frame = load ptr, ptr %p9
  %p10 = call ptr @word(ptr %pool, i64 10)
  %count = load i64, ptr %p10
  %next = call ptr @word(ptr %pool, i64 32)
  %left = call ptr @word(ptr %pool, i64 48)
  br label %again
again:
  %is_left = load atomic i64, ptr %left monotonic, align 8
  %go = icmp eq i64 %is_left, 0
  br i1 %go, label %take, label %done
take:
  %share = atomicrmw add ptr %next, i64 1 monotonic
  %there = icmp slt i64 %share, %count
  br i1 %there, label %run, label %done
run:
  %status = call i32 %body(ptr %frame, i64 %share, ptr %local)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %again, label %leave
leave:
  %at = getelementptr i64, ptr %local, i64 SHARE
  store i64 %share, ptr %at
  store atomic i64 1, ptr %left monotonic, align 8
  br label %done
done:
  ret void
}

ALONE
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal i64 @waited(ptr %place, i64 %wanted_zero) {
; look at a word for a while: until it is zero, or not zero; whether that came
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k1, %again ]
  %value = load atomic i64, ptr %place acquire, align 8
  %is_zero = icmp eq i64 %value, 0
  %wants = icmp ne i64 %wanted_zero, 0
  %met = icmp eq i1 %is_zero, %wants
  br i1 %met, label %found, label %more
more:
  %k1 = add i64 %k, 1
  %go = icmp slt i64 %k1, SPINS
  br i1 %go, label %again, label %tired
again:
  %r = call i32 @sched_yield()
  br label %head
found:
  ret i64 1
tired:
  ret i64 0
}

define i32 @dispatch(ptr %pool, ptr %body, ptr %frame, i64 %count, i64 %work, ptr %fault) {
entry:
  %busy = call ptr @word(ptr %pool, i64 3)
  %was = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %free = extractvalue { i64, i1 } %was, 1
  br i1 %free, label %begin, label %by_itself
by_itself:
  %status = call i32 @alone(ptr %body, ptr %frame, i64 %count, ptr %fault)
  ret i32 %status
begin:
  %mutex = call ptr @word(ptr %pool, i64 64)
  %wake = call ptr @word(ptr %pool, i64 128)
  %done = call ptr @word(ptr %pool, i64 192)
  %p1 = call ptr @word(ptr %pool, i64 1)
  %threads = load i64, ptr %p1
  %p8 = call ptr @word(ptr %pool, i64 8)
  store ptr %body, ptr %p8
  %p9 = call ptr @word(ptr %pool, i64 9)
  store ptr %frame, ptr %p9
  %p10 = call ptr @word(ptr %pool, i64 10)
  store i64 %count, ptr %p10
  %p11 = call ptr @word(ptr %pool, i64 11)
  store i64 0, ptr %p11
  %next = call ptr @word(ptr %pool, i64 32)
  store i64 0, ptr %next
  %left = call ptr @word(ptr %pool, i64 48)
  store i64 0, ptr %left
  %joined = call ptr @word(ptr %pool, i64 6)
  store i64 0, ptr %joined
  %p12 = call ptr @word(ptr %pool, i64 12)
  %loops = load i64, ptr %p12
  %loops1 = add i64 %loops, 1
  store i64 %loops1, ptr %p12
  %p2 = call ptr @word(ptr %pool, i64 2)
  %bound = load i64, ptr %p2
  %is_unit = icmp sgt i64 %bound, 1
  %unit = select i1 %is_unit, i64 %bound, i64 1
  %most = sdiv i64 %work, %unit
  %rest = sub i64 %threads, 1
  %enough = icmp slt i64 %most, %rest
  %others = select i1 %enough, i64 %most, i64 %rest
  %more = sub i64 %count, 1
  %few = icmp slt i64 %more, %others
  %open_for = select i1 %few, i64 %more, i64 %others
  br label %clear
clear:
  %k = phi i64 [ 0, %begin ], [ %k1, %clear ]
  %each = call ptr @local(ptr %pool, i64 %k)
  %each_fault = getelementptr i64, ptr %each, i64 FAULT
  store i64 0, ptr %each_fault
  %k1 = add i64 %k, 1
  %clearing = icmp slt i64 %k1, %threads
  br i1 %clearing, label %clear, label %call
call:
  %open = call ptr @word(ptr %pool, i64 4)
  %r1 = call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i64 %open_for, ptr %open release, align 8
  %r3 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %wake_up
wake_up:
  %n0 = phi i64 [ 0, %call ], [ %n01, %signal ]
  %waking = icmp slt i64 %n0, %open_for
  br i1 %waking, label %signal, label %woken
signal:
  %r2 = call i32 @pthread_cond_signal(ptr %wake)
  %n01 = add i64 %n0, 1
  br label %wake_up
woken:
  call void @take_shares(ptr %pool, i64 0)
  %r4 = call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i64 0, ptr %open release, align 8
  %r5 = call i32 @pthread_mutex_unlock(ptr %mutex)
  %active = call ptr @word(ptr %pool, i64 5)
  %soon = call i64 @waited(ptr %active, i64 1)
  %r6 = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %wait
wait:
  %running = load i64, ptr %active
  %none = icmp eq i64 %running, 0
  br i1 %none, label %together, label %sleep
sleep:
  %r7 = call i32 @pthread_cond_wait(ptr %done, ptr %mutex)
  br label %wait
together:
  %r8 = call i32 @pthread_mutex_unlock(ptr %mutex)
  %flags64 = load i64, ptr %p11
  %flags = trunc i64 %flags64 to i32
  %is_flagged = icmp ne i32 %flags, 0
  br i1 %is_flagged, label %raise, label %look
raise:
  %r9 = call i32 @feraiseexcept(i32 %flags)
  br label %look
look:
  %is_left = load i64, ptr %left
  %whole = icmp eq i64 %is_left, 0
  br i1 %whole, label %end, label %search
search:
  %n = phi i64 [ 0, %look ], [ %n1, %tested ]
  %first = phi i64 [ 9223372036854775807, %look ], [ %first1, %tested ]
  %found = phi ptr [ null, %look ], [ %found1, %tested ]
  %one = call ptr @local(ptr %pool, i64 %n)
  %one_fault = getelementptr i64, ptr %one, i64 FAULT
  %noted = load i64, ptr %one_fault
  %one_share = getelementptr i64, ptr %one, i64 SHARE
  %share = load i64, ptr %one_share
  %is_noted = icmp ne i64 %noted, 0
  %before = icmp slt i64 %share, %first
  %better = and i1 %is_noted, %before
  br label %tested
tested:
  %first1 = select i1 %better, i64 %share, i64 %first
  %found1 = select i1 %better, ptr %one_fault, ptr %found
  %n1 = add i64 %n, 1
  %searching = icmp slt i64 %n1, %threads
  br i1 %searching, label %search, label %chosen
chosen:
  %nothing = icmp eq ptr %found1, null
  br i1 %nothing, label %end, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %fault, ptr %found1, i64 32, i1 false)
  br label %end
end:
  store atomic i64 0, ptr %busy release, align 8
  %result = trunc i64 %is_left to i32
  ret i32 %result
}

define ptr @work(ptr %pool) {
entry:
  %mutex = call ptr @word(ptr %pool, i64 64)
  %wake = call ptr @word(ptr %pool, i64 128)
  %done = call ptr @word(ptr %pool, i64 192)
  %open = call ptr @word(ptr %pool, i64 4)
  %active = call ptr @word(ptr %pool, i64 5)
  %joined = call ptr @word(ptr %pool, i64 6)
  %ends = call ptr @word(ptr %pool, i64 7)
  %flags = call ptr @word(ptr %pool, i64 11)
  br label %again
again:
  %soon = call i64 @waited(ptr %open, i64 0)
  %r1 = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %look
look:
  %is_end = load i64, ptr %ends
  %goes_on = icmp eq i64 %is_end, 0
  br i1 %goes_on, label %asked, label %end
asked:
  %places = load i64, ptr %open
  %is_open = icmp sgt i64 %places, 0
  br i1 %is_open, label %join, label %sleep
sleep:
  %r2 = call i32 @pthread_cond_wait(ptr %wake, ptr %mutex)
  br label %look
join:
  %fewer = sub i64 %places, 1
  store atomic i64 %fewer, ptr %open monotonic, align 8
  %a = load i64, ptr %active
  %a1 = add i64 %a, 1
  store atomic i64 %a1, ptr %active monotonic, align 8
  %j = load i64, ptr %joined
  %j1 = add i64 %j, 1
  store i64 %j1, ptr %joined
  %r3 = call i32 @pthread_mutex_unlock(ptr %mutex)
  %r4 = call i32 @feclearexcept(i32 BITS)
  call void @take_shares(ptr %pool, i64 %j1)
  %seen = call i32 @fetestexcept(i32 BITS)
  %r5 = call i32 @pthread_mutex_lock(ptr %mutex)
  %seen64 = zext i32 %seen to i64
  %f = load i64, ptr %flags
  %f1 = or i64 %f, %seen64
  store i64 %f1, ptr %flags
  %b = load i64, ptr %active
  %b1 = sub i64 %b, 1
  store atomic i64 %b1, ptr %active release, align 8
  %last = icmp eq i64 %b1, 0
  br i1 %last, label %tell, label %leave
tell:
  %r6 = call i32 @pthread_cond_signal(ptr %done)
  br label %leave
leave:
  %r7 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %again
end:
  %r8 = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret ptr null
}

define i32 @finish(ptr %pool) {
; have the threads end, where the pool is not at work; whether they will
entry:
  %busy = call ptr @word(ptr %pool, i64 3)
  %was = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %free = extractvalue { i64, i1 } %was, 1
  br i1 %free, label %tell, label %no
no:
  ret i32 0
tell:
  %mutex = call ptr @word(ptr %pool, i64 64)
  %wake = call ptr @word(ptr %pool, i64 128)
  %ends = call ptr @word(ptr %pool, i64 7)
  %r1 = call i32 @pthread_mutex_lock(ptr %mutex)
  store i64 1, ptr %ends
  %r2 = call i32 @pthread_cond_broadcast(ptr %wake)
  %r3 = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret i32 1
}
"""


def pool_text(bits: int, spins: int) -> str:
    """Return the module of the pool.

    Parameters
    ----------
    bits
        The floating-point flags that are looked at.
    spins
        How often a thread looks, and lets others run, before it sleeps.
    """
    text = _TEXT.replace("ALONE", ALONE)
    for name, value in (("WORDS", WORDS), ("LOCAL", LOCAL), ("FAULT", FAULT), ("SHARE", SHARE), ("PLACE", PLACE)):
        text = text.replace(name, str(value))
    return text.replace("SPINS", str(spins)).replace("BITS", str(bits))
