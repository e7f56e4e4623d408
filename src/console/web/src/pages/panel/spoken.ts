import { useEffect, useRef, useState } from 'react'

/** A text that changes often, at a pace at which it can be read out. @param pace - ms */
export function useAnnouncement(text: string, pace: number): string {
  const [spoken, setSpoken] = useState(text)
  const latest = useRef(text)
  useEffect(() => { latest.current = text }, [text])
  useEffect(() => {
    const timer = setInterval(() => { setSpoken(latest.current) }, pace)
    return () => { clearInterval(timer) }
  }, [pace])
  return spoken
}
