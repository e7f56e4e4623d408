import { lazy, type ComponentType } from 'react'

/** The script of a page did not arrive. Only a reload of the document requests it again. */
export class PageLoadError extends Error {
  override readonly name = 'PageLoadError'

  constructor(cause: unknown) {
    super('The gateway does not respond. It may be restarting.', { cause })
  }
}

/** A page that is a separate chunk, loaded on the first visit. */
export function lazyPage(load: () => Promise<{ default: ComponentType }>): ComponentType {
  return lazy(() => load().catch((error: unknown) => {
    throw new PageLoadError(error)
  }))
}
