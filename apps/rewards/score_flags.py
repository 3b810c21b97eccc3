"""What the flags of a score mean, for the pages that show scores."""

MEANINGS = {
    "truncated": "The input is longer than the model reads, so a part of it was left out.",
    "task_cut": "The task is too long, so a part of it was left out. Compare only answers with equal task_tokens.",
    "uncertain": "The ensemble's members disagree about this input.",
    "out_of_distribution": "The input is unlike the model's training data.",
    "template_rewrites": "The model's chat template changes earlier steps when the next one comes.",
    "steps:uncalibrated": "Learnt from comparisons of whole trajectories: the step rewards do not measure credit.",
    "group_of_one": "The endpoint compares the inputs of a group, and this one was alone in its group.",
    "program_failed": "The code of a reward program failed on this input, which got the `otherwise` of the component.",
    "running_statistics": "Normalised by the rewards so far: the same input gets another reward later.",
    "canary": "The candidate of an open release scored it.",
    "template_in_text": "Marks of a chat template or of a tool call stand in a text and were scored as text.",
    "template_lossy": "The chat template that rendered the text does not keep all of a conversation.",
    "turns_in_text": "Turns of others were read from a text, in which nothing tells the policy's words from others'.",
    "messages_in_text": "The prompt was a JSON text of chat messages, and was read as these.",
    "prompt_cut": "The rendered prompt has lost its beginning.",
    "reasoning_unclosed": "The prompt opens the agent's reasoning, and the response does not close it.",
    "aligned": "The query did not contain its prompt letter for letter; both were aligned.",
    "orphan_result": "A tool result answers no call, and was read as an observation.",
    "empty_response": "The agent's last step is empty.",
    "(others)": "Further flags of the same hour, counted together.",
    "unread:image": "Pictures were not read: no model or judge of the endpoint sees, or they were named by an address.",
    "judge_pictures_cut": "A judge was shown some of the pictures only, or none: its critique says how many.",
    "unread:audio": "Audio was not read.",
    "unread:video": "Video was not read.",
    "unread:file": "Files were not read.",
    "unread:reference": "No component of the endpoint reads the reference answer.",
    "unread:goal": "No model of the endpoint reads goals.",
    "unread:principle": "No model of the endpoint reads principles.",
    "unread:persona": "No model of the endpoint reads personas.",
    "missing:reference": "A model reads the reference answer, and the item came without one.",
    "missing:goal": "A model reads the goal, and the item came without one.",
    "missing:principle": "A model reads a principle, and the item came without one.",
    "missing:persona": "A model reads a persona, and the item came without one.",
    "unread:speaker": "Names of speakers were not read.",
    "unread:tools": "Declared tools were not read.",
    "unread:default_system": "The chat template's own system message was not read.",
    "unread:after_last_agent_step": "Messages after the agent's last step were not read.",
}


def flag_meaning(flag: str) -> str:
    known = MEANINGS.get(flag)
    if known is not None:
        return known
    field = flag.removeprefix("unread:")
    return f"The field {field} of a message was not read." if field != flag else ""
