import { useEffect, useRef, useState } from 'react'

/** Limits how often a text changes, so that a screen reader has time to read it out. @param pace - minimum ms between two changes */
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
