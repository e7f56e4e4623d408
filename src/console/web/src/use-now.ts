import { useEffect, useState } from 'react'

/** The current time in ms since 1970, for texts such as `5 min ago`. It is updated every `every` ms. */
export function useNow(every = 10_000): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => { setNow(Date.now()) }, every)
    return () => { clearInterval(timer) }
  }, [every])
  return now
}
