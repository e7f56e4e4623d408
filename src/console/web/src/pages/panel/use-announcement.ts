import { useEffect, useRef, useState } from 'react'

/** Limits how often a text changes, so that screen readers can read it out. @param pace - ms */
export function useAnnouncement(text: string, pace: number): string {
  const [announcement, setAnnouncement] = useState(text)
  const latest = useRef(text)
  useEffect(() => { latest.current = text }, [text])
  useEffect(() => {
    const timer = setInterval(() => { setAnnouncement(latest.current) }, pace)
    return () => { clearInterval(timer) }
  }, [pace])
  return announcement
}
