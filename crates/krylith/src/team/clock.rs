//! The processor time of a thread, as another thread reads it: whether it has run or the system has kept it waiting.

use std::time::Duration;

/// The clock of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadClock {
    #[cfg(target_os = "linux")]
    id: libc::clockid_t,
}

impl ThreadClock {
    /// The clock of the calling thread, where the system has one.
    pub(super) fn current() -> Option<Self> {
        #[cfg(target_os = "linux")]
        {
            let mut id = 0;
            // SAFETY: the calling thread exists, and `id` is written if the call succeeds.
            let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut id) };
            (error == 0).then_some(ThreadClock { id })
        }
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Processor time that the thread has used; `None` if it has ended.
    pub(super) fn read(&self) -> Option<Duration> {
        #[cfg(target_os = "linux")]
        {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is written if the call succeeds; the system refuses the clock of a thread that has ended.
            let error = unsafe { libc::clock_gettime(self.id, &mut time) };
            (error == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Instant;

    #[test]
    fn a_sleeping_thread_uses_no_time_and_a_busy_one_does() {
        let (send, receive) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send.send(ThreadClock::current().unwrap()).unwrap();
            may_go.recv().unwrap();
            let began = ThreadClock::current().unwrap().read().unwrap();
            while ThreadClock::current().unwrap().read().unwrap() < began + Duration::from_millis(20) {}
            send.send(ThreadClock::current().unwrap()).unwrap();
            let _ = may_go.recv();
        });
        let clock = receive.recv().unwrap();
        let before = clock.read().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let slept = clock.read().unwrap() - before;
        assert!(slept < Duration::from_millis(10), "{slept:?}");
        let started = Instant::now();
        go.send(()).unwrap();
        receive.recv().unwrap();
        let ran = clock.read().unwrap() - before - slept;
        assert!(ran >= Duration::from_millis(20), "{ran:?}");
        assert!(ran <= started.elapsed() + Duration::from_millis(10));
        drop(go);
        thread.join().unwrap();
    }
}
