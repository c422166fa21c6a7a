{% macro headrace__drop_relation(relation) -%}
  {% call statement('drop_relation', auto_begin=False) -%}
    {% if relation.is_stream_table %}
      drop stream table if exists {{ relation }}
    {% else %}
      drop {{ relation.type }} if exists {{ relation }}
    {% endif %}
  {%- endcall %}
{% endmacro %}


{% macro headrace__rename_relation(from_relation, to_relation) -%}
  {% if from_relation.is_stream_table %}
    {% do exceptions.raise_compiler_error('A stream table cannot be renamed: ' ~ from_relation.render()) %}
  {% endif %}
  {{ return(spark__rename_relation(from_relation, to_relation)) }}
{% endmacro %}


{#-- ANSI mode is the project's; where it is on, `cast` raises errors. --#}
{% macro headrace__safe_cast(field, type) %}
  try_cast({{ field }} as {{ type }})
{% endmacro %}
