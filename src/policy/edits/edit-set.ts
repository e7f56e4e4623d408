import type { EditRules } from '../../config/edit-types.ts'
import type { Group, Key } from '../../config/key-types.ts'

interface Edited {
  readonly edit?: EditRules | null
}

/** Whose request it is, and where it goes: each can have changes. */
export interface EditScope {
  readonly route: Edited
  readonly key: Edited | null
  /** The nearest first. */
  readonly groups: readonly Edited[]
}

/** The changes of a configuration. */
export class EditSet {
  readonly #top: EditRules | null

  constructor(top: EditRules | null) {
    this.#top = top
  }

  /** The changes of a request, the more general first: the more special are made later, so they win. */
  of({ route, key, groups }: EditScope): EditRules[] {
    return [this.#top, ...groups.toReversed().map(({ edit }) => edit), key?.edit, route.edit].filter(edit => edit !== null && edit !== undefined)
  }
}

/** @returns null = the configuration changes no request */
export function createEditSet({ edit, groups, keys, routes }: {
  readonly edit: EditRules | null
  readonly groups: ReadonlyMap<string, Group>
  readonly keys: readonly Key[]
  readonly routes: readonly { readonly edit: EditRules | null }[]
}): EditSet | null {
  const places: readonly Edited[] = [{ edit }, ...groups.values(), ...keys, ...routes]
  return places.some(place => place.edit !== null && place.edit !== undefined) ? new EditSet(edit) : null
}
