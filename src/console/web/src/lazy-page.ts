import { lazy, type ComponentType } from 'react'

/** The script of a page could not be loaded. The browser requests it again only if the document is reloaded. */
export class PageLoadError extends Error {
  override readonly name = 'PageLoadError'

  constructor(cause: unknown) {
    super('The gateway does not respond. It may be restarting.', { cause })
  }
}

/** A page in a separate script, which is loaded at the first visit. */
export function lazyPage(load: () => Promise<{ default: ComponentType }>): ComponentType {
  return lazy(() => load().catch((error: unknown) => {
    throw new PageLoadError(error)
  }))
}
