"""Named patterns that are counted in what an agent wrote, and in what its tools returned."""

from collections.abc import Mapping
from itertools import islice

from workers.schema.patterns import TextPattern, TextPatternSet

# In what tools returned. `error_words` is less the times that there was none ("0 errors").
NO_FAILURE = TextPattern(r"(?i)\b(?:no|0|without|zero)(?: any)? (?:errors?|failures?|failed)\b")
FAILURES = {
    "error_words": TextPattern(
        r"(?i)\b(?:errors?|fail(?:s|ed|ures?)?|fatal|invalid|denied|refused|forbidden|unauthori[sz]ed|timed out"
        r"|timeout|cannot|unable to|incorrect|wrong)\b"
    ),
    "exceptions": TextPattern(
        r"Traceback \(most recent|\b[A-Z]\w*(?:Error|Exception)\b|\bpanic:|Segmentation fault|core dumped"
    ),
    "exit_codes": TextPattern(
        r"(?i)(?:\bexit ?(?:code|status)|\bexited with(?: code| status)?|return ?code)[\"'>:= ]{1,4}-?[1-9]"
    ),
    "http_errors": TextPattern(
        r"(?i)\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?:[_ ]code)?)[\"' :=]{1,4}[45]\d\d\b"
        r"|\b[45]\d\d (?:client error|server error|not found|bad request|forbidden|unauthorized"
        r"|internal server error|bad gateway|service unavailable|too many requests)"
    ),
    "not_found": TextPattern(
        r"(?i)\bnot found\b|\bno such\b|\bdoes(?: not|n['’]t) exist|\b(?:could|can) ?not find\b"
        r"|\bnot (?:defined|recognized)\b|\bno (?:results?|match(?:es)?)\b"
    ),
}
# In what the agent wrote.
PHRASES = {
    "refusals": TextPattern(
        r"(?i)\bI(?: can(?:no|['’])t| can not| won['’]t| will not|(?: am|['’]m) (?:not able|unable|not comfortable)"
        r"| (?:must|have to) decline| (?:do not|don['’]t) (?:feel comfortable|think (?:that )?I (?:can|should)))"
        r"|\b(?:not allowed|not possible|against (?:my|our|the) (?:policy|policies|guidelines))\b"
    ),
    "hedges": TextPattern(
        r"(?i)\b(?:maybe|perhaps|possibly|might|may be|could be|I (?:think|believe|guess|suppose)|not (?:really )?sure"
        r"|it depends|seems?|likely|probably|unclear|I assume)\b"
    ),
    "apologies": TextPattern(
        r"(?i)\b(?:sorry|apologi[sz]e|apologies|my mistake|forgive me|oops|unfortunately)\b"
    ),
    "unknowns": TextPattern(
        r"(?i)\b(?:(?:do not|don['’]t) (?:know|have (?:enough |any )?information|understand)|not (?:mentioned|specified"
        r"|provided|enough information)|no information|what do you mean)\b"
    ),
    "agreement": TextPattern(
        r"(?i)\b(?:yes|yeah|sure|of course|certainly|absolutely|definitely|okay|ok|exactly|indeed|you(?: are|['’]re)"
        r" right|sounds good|good idea|great)\b"
    ),
    "negations": TextPattern(r"(?i)\b(?:no|not|never|none|nothing|nor|cannot)\b|n['’]t\b"),
    "thanks": TextPattern(r"(?i)\b(?:thank(?:s| you)|welcome|glad|happy to|hope (?:this|that|it) helps)\b"),
    "corrections": TextPattern(
        r"(?i)\b(?:wait|actually|correction|try again|let me (?:re\w+|check|try|fix)|instead|mistakenly)\b"
    ),
    "intents": TextPattern(r"(?i)\b(?:I(?: will|['’]ll| am going to|['’]m going to)|let me|let['’]s)\b"),
    "requests": TextPattern(
        r"(?i)\b(?:would you like|do you want|could you|can you|please (?:provide|confirm|let me know|tell)|shall I"
        r"|is (?:that|this) (?:correct|right|ok))\b"
    ),
    "advice": TextPattern(
        r"(?i)\b(?:you (?:should|could|can|must|need to|might want)|try to|make sure|I(?:['’]d| would)? (?:recommend"
        r"|suggest)|it['’]?s (?:best|important))\b"
    ),
    "final_marks": TextPattern(
        r"(?i)\bfinal answer\b|\b(?:the )?answer(?: is|:)|\\boxed|####|</?(?:answer|solution|final)>"
        r"|\bin (?:conclusion|summary)\b|\btask (?:is |has been )?(?:completed?|done|finished)\b|\bterminate\b"
    ),
    "first_person": TextPattern(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself)\b"),
    "second_person": TextPattern(r"(?i)\b(?:you|your|yours|yourself)\b"),
    "bullets": TextPattern(r"(?m)^[ \t]*[-*+•] "),
    "numbered": TextPattern(r"(?m)^[ \t]*\d{1,3}[.)] "),
    "headings": TextPattern(r"(?m)^#{1,6} "),
    "bold": TextPattern(r"\*\*[^*\n]{1,200}\*\*"),
    "inline_code": TextPattern(r"`[^`\n]{1,200}`"),
    "table_rows": TextPattern(r"(?m)^[ \t]*\|"),
}
# In what the agent wrote, each of the texts given.
SYMBOLS = {
    "questions": ("?", "？"),
    "exclamations": ("!", "！"),
    "code_blocks": ("```", "<execute>"),
    "urls": ("://", "www."),
    "quotes": ('"', "“"),
    "brackets": ("(",),
    "commas": (",", ";"),
}
_STOP_WORDS = (
    "a,about,after,again,all,also,am,an,and,any,are,as,at,be,because,been,before,being,both,but,by",
    "can,could,did,do,does,for,from,had,has,have,he,her,here,hers,him,his,how,i,if,in,into,is,it",
    "its,just,me,more,most,my,no,nor,not,of,on,once,only,or,other,our,out,over,own,same,she,should",
    "so,some,such,than,that,the,their,them,then,there,these,they,this,those,through,to,too,until,up",
    "very,was,we,were,what,when,where,which,while,who,whom,why,will,with,would,you,your,yours,s,t,d",
    "ll,m,re,ve,don",
)
STOP_WORDS = frozenset(word for line in _STOP_WORDS for word in line.split(","))


class PhraseCounter:
    """Counts the matches of several patterns in a text; those that match nowhere in it cost next to nothing."""

    def __init__(self, patterns: Mapping[str, TextPattern]) -> None:
        self._patterns = [*patterns.items()]
        self._set = TextPatternSet(patterns.values())

    def count(self, text: str, most: int) -> dict[str, int]:
        """By name, not beyond `most`, of the patterns that match."""
        found = (self._patterns[place] for place in self._set.found_in(text))
        return {name: count_matches(pattern, text, most) for name, pattern in found}


def count_matches(pattern: TextPattern, text: str, most: int) -> int:
    """Not beyond `most`, so that a long text of matches takes no longer to count."""
    return sum(1 for _ in islice(pattern.finditer(text), most))
