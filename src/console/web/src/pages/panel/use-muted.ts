import { useLocalStorage } from '@mantine/hooks'
import type { Alert } from './alert-groups.ts'

/** ms for which an alert stays muted. */
const MUTED_MS = 24 * 3_600_000

/** For each muted alert, by id, the time at which the alert is shown again, in ms since 1970. */
type Mutes = Readonly<Record<string, number>>

/** The alerts that this browser hides for 24 hours. @param now - ms since 1970 */
export function useMuted(now: number) {
  const [mutes, setMutes] = useLocalStorage<Mutes>({ key: 'gateway_console_muted', defaultValue: {}, getInitialValueInEffect: false })
  return {
    isMuted: ({ id }: Alert): boolean => (mutes[id] ?? 0) > now,
    mute: (alerts: readonly Alert[]) => {
      const running = Object.entries(mutes).filter(([, end]) => end > now)
      setMutes(Object.fromEntries([...running, ...alerts.map(({ id }) => [id, now + MUTED_MS] as const)]))
    },
    unmuteAll: () => { setMutes({}) },
  }
}
