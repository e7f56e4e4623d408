import { bodyOf, startUpstream } from '../../support/upstream.ts'

/** An event as the webhook receives it. */
export interface Event {
  readonly id: string
  readonly type: string
  readonly severity: string
  readonly subject: string | null
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

/** A webhook that keeps what it receives. */
export interface Hook {
  readonly url: string
  readonly events: readonly Event[]
  /** Resolves with the first event of the type, past or future, that fits. */
  reported(type: string, fits?: (event: Event) => boolean): Promise<Event>
}

export async function startHook(t: Tap): Promise<Hook> {
  const events: Event[] = []
  let heard = (): void => {}
  const { url } = await startUpstream(t, async (req, res) => {
    events.push(JSON.parse(String(await bodyOf(req))) as Event)
    res.end()
    heard()
  })
  return {
    url,
    events,
    reported: async (type, fits = () => true) => {
      for (;;) {
        const found = events.find(each => each.type === type && fits(each))
        if (found) return found
        await new Promise<void>(resolve => (heard = resolve))
      }
    },
  }
}

type Tap = Parameters<typeof startUpstream>[0]
