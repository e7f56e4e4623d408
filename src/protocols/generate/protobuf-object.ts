import { BodyObject } from '../neutral/dialects/body-object.ts'
import type { JsonObject } from '../neutral/json.ts'

/**
 * Reads an object as Google's parser does (https://protobuf.dev/programming-guides/json/): numbers and booleans may be text,
 * enum names are case-insensitive, and a single value counts as a list of one.
 */
export class ProtobufObject extends BodyObject {
  protected override open(members: JsonObject, path: string): BodyObject {
    return new ProtobufObject(members, path, this.report)
  }

  protected override numberOf(value: unknown): number | null {
    return super.numberOf(typeof value === 'string' && value.trim() !== '' ? Number(value) : value)
  }

  protected override booleanOf(value: unknown): boolean | null {
    return value === 'true' ? true : value === 'false' ? false : super.booleanOf(value)
  }

  protected override wordOf<T extends string>(value: unknown, words: readonly T[]): T | null {
    // A number is the index in the enum, whose order `words` has.
    if (typeof value === 'number') return words[value] ?? null
    return typeof value === 'string' ? words.find(word => word.toLowerCase() === value.toLowerCase()) ?? null : null
  }

  protected override listOf(value: unknown, isItem: (value: unknown) => boolean): readonly unknown[] | null {
    return isItem(value) ? [value] : super.listOf(value, isItem)
  }
}
