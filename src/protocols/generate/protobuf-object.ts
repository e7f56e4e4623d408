import { BodyObject } from '../neutral/dialects/body-object.ts'
import type { JsonObject } from '../neutral/json.ts'

/**
 * Reads an object as Google's parser does (https://protobuf.dev/programming-guides/json/): a number or a boolean may be text, the names of
 * an enum are case-insensitive, and a single value in place of a list is a list of one value.
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
    // A number is the index of the name in the enum: `words` has the order of the enum.
    if (typeof value === 'number') return words[value] ?? null
    return typeof value === 'string' ? words.find(word => word.toLowerCase() === value.toLowerCase()) ?? null : null
  }

  protected override listOf(value: unknown, isItem: (value: unknown) => boolean): readonly unknown[] | null {
    return isItem(value) ? [value] : super.listOf(value, isItem)
  }
}
