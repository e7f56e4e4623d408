import { useEffect, useState } from 'react'

/** The time, Unix ms, told anew every so often: for `5 min ago`. */
export function useNow(every = 10_000): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => { setNow(Date.now()) }, every)
    return () => { clearInterval(timer) }
  }, [every])
  return now
}
